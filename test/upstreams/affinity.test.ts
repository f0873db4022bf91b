import fc from 'fast-check'
import t from 'tap'
import { Affinity } from '../../plugins/upstreams/affinity.js'
import { HealthRegistry } from '../../plugins/upstreams/health.js'
import { lessBusy } from '../../plugins/upstreams/less-busy.js'
import { Load } from '../../plugins/upstreams/load.js'
import { newMember, type Member } from '../../plugins/upstreams/member.js'
import { score, textHash } from '../../plugins/upstreams/rendezvous.js'
import { upstreamOf } from './request.js'

type Some = [Member, ...Member[]]

function members (...weights: number[]): Some {
  const registry = new HealthRegistry()
  const [first, ...others] = weights.map((weight, i) => {
    const upstream = upstreamOf({ url: `http://h${i}` }, `u${i}`)
    return newMember(upstream, registry.of(upstream), { weight, concurrency: Infinity, tier: 1 })
  })
  if (first === undefined) throw new Error('none')
  return [first, ...others]
}

/** The same numbers in each run. */
function seeded (seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/**
 * Agents at work, each turn after the one before: how many turns stay where the conversation was, and the largest share over an even one.
 */
function replay (pool: Some, perSecond: number, conversations: number, seed: number): { stay: number, most: number } {
  const random = seeded(seed)
  const affinity = new Affinity()
  const turns: Array<{ at: number, conversation: number, ms: number }> = []
  for (let conversation = 0; conversation < conversations; conversation += 1) {
    let at = random() * conversations / perSecond * 1_000
    for (let turn = 3 + Math.floor(-20 * Math.log(1 - random())); turn > 0; turn -= 1) {
      const ms = 1_000 + random() * 10_000
      turns.push({ at, conversation, ms })
      at += ms + random() * 10_000
    }
  }
  turns.sort((one, other) => one.at - other.at)
  const last = new Map<number, Member>()
  const counts = new Map<Member, number>()
  let running: Array<{ until: number, load: Load }> = []
  let stayed = 0
  for (const { at, conversation, ms } of turns) {
    for (const { until, load } of running) if (until <= at) load.end()
    running = running.filter(({ until }) => until > at)
    const member = affinity.pick(pool, { hash: textHash(`caller\n${conversation}`), stays: true }, at)
    member.load.begin(at)
    running.push({ until: at + ms, load: member.load })
    if (last.get(conversation) === member) stayed += 1
    last.set(conversation, member)
    counts.set(member, (counts.get(member) ?? 0) + 1)
  }
  return { stay: stayed / (turns.length - last.size), most: Math.max(...counts.values()) / (turns.length / pool.length) }
}

t.test('conversations of agents stay on their member, and no member has far more than its share', async (t) => {
  for (const perSecond of [0.3, 1, 5]) {
    for (const seed of [1, 2, 3]) {
      const { stay, most } = replay(members(1, 1, 1, 1), perSecond, 400, seed)
      t.ok(stay >= 0.98, `${stay} of the turns stay`)
      t.ok(most <= 1.25, `${most} of an even share`)
    }
  }
})

t.test('one key with all of the load does not keep to one member', async (t) => {
  const pool = members(1, 1, 1)
  const affinity = new Affinity()
  const tie = { hash: textHash('caller\n'), stays: false }
  for (let i = 0; i < 900; i += 1) affinity.pick(pool, tie, i).load.begin(i)
  for (const { load } of pool) t.ok(load.active <= 375 + 8, String(load.active))
  const idle = members(1, 1, 1)
  t.equal(new Set(Array.from({ length: 5 }, () => affinity.pick(idle, tie, 0))).size, 1, 'and does where there is little')
})

t.test('a conversation whose member went stays where it went then', async (t) => {
  const [one, two, three] = members(1, 1, 1)
  if (two === undefined || three === undefined) throw new Error('none')
  const affinity = new Affinity()
  const all: Some = [one, two, three]
  const tie = { hash: textHash('caller\nc'), stays: true }
  const home = affinity.pick(all, tie, 0)
  const left = all.filter((member) => member !== home)
  const [first, ...others] = left
  if (first === undefined) throw new Error('none')
  const second = affinity.pick([first, ...others], tie, 0)
  t.not(second, home)
  t.equal(affinity.pick(all, tie, 0), second, 'also when the first one is back')
  t.equal(new Affinity().pick(all, tie, 0), home, 'another process that saw none of it')
})

t.test('a conversation leaves a member that runs far more than its share, and stays where it went then', async (t) => {
  const pool = members(1, 1)
  const affinity = new Affinity()
  const tie = { hash: textHash('caller\nc'), stays: true }
  const home = affinity.pick(pool, tie, 0)
  for (let i = 0; i < 7; i += 1) home.load.begin(0)
  t.equal(affinity.pick(pool, tie, 0), home, 'so few are no load')
  home.load.begin(0)
  const next = affinity.pick(pool, tie, 0)
  t.not(next, home)
  for (let i = 0; i < 8; i += 1) home.load.end()
  t.equal(affinity.pick(pool, tie, 0), next, 'also when the first one is idle')
})

t.test('each member gets its share of all keys, and only keys of a member that goes move', async (t) => {
  const [one, two, three] = members(1, 2, 1)
  if (two === undefined || three === undefined) throw new Error('none')
  const best = (key: number, among: readonly Member[]): Member | undefined =>
    [...among].sort((a, b) => score(key, b.hash, b.weight) - score(key, a.hash, a.weight))[0]
  const counts = new Map<Member | undefined, number>()
  for (let i = 0; i < 4_000; i += 1) {
    const key = textHash(`c${i}`)
    const winner = best(key, [one, two, three])
    counts.set(winner, (counts.get(winner) ?? 0) + 1)
    if (winner !== three) t.equal(best(key, [one, two]), winner)
  }
  t.ok(Math.abs((counts.get(two) ?? 0) - 2_000) < 150, String(counts.get(two)))
  t.ok(Math.abs((counts.get(one) ?? 0) - 1_000) < 150, String(counts.get(one)))
})

t.test('the less busy of two spreads requests by weight', async (t) => {
  const pool = members(1, 1, 1)
  for (let i = 0; i < 300; i += 1) lessBusy(pool, Math.random).load.begin(0)
  for (const { load } of pool) t.ok(Math.abs(load.active - 100) <= 15, String(load.active))
  const weighted = members(3, 1)
  const random = seeded(1)
  for (let i = 0; i < 400; i += 1) lessBusy(weighted, random).load.begin(0)
  t.ok(Math.abs(weighted[0].load.active - 300) <= 20, String(weighted[0].load.active))
  t.equal(lessBusy([weighted[0]], random), weighted[0])
  const [idle, busy] = members(1, 1)
  if (busy === undefined) throw new Error('none')
  busy.load.begin(0)
  for (let i = 0; i < 20; i += 1) t.equal(lessBusy([busy, idle], random), idle, 'of two never the busier one')
  t.equal(lessBusy([idle, busy], () => 1), idle, 'a sum of weights that is rounded')
})

t.test('there is always one with room', async () => {
  fc.assert(fc.property(fc.array(fc.record({ load: fc.nat(200), weight: fc.integer({ min: 1, max: 50 }) }), {
    minLength: 1, maxLength: 6,
  }), fc.nat(), (given, hash) => {
    const pool = members(...given.map(({ weight }) => weight))
    given.forEach(({ load }, i) => { for (let n = 0; n < load; n += 1) pool[i]?.load.begin(0) })
    const total = pool.reduce((sum, { load }) => sum + load.at(0), 1)
    const weights = pool.reduce((sum, { weight }) => sum + weight, 0)
    const picked = new Affinity().pick(pool, { hash, stays: false }, 0)
    return picked.load.at(0) + 1 <= Math.max(8, 1.25 * total * picked.weight / weights)
  }), { numRuns: 200 })
})

t.test('texts one behind the other are one text', async (t) => {
  t.equal(textHash('caller', '\n', 'words'), textHash('caller\nwords'))
  t.equal(textHash('', '\n', ''), textHash('\n'))
})

t.test('load is what runs, and what was begun of late', async (t) => {
  const load = new Load()
  t.equal(load.at(5), 0)
  load.begin(0)
  t.equal(load.at(0), 2)
  load.end()
  t.equal(load.at(0), 1)
  t.ok(load.at(300_000) < 0.001)
  load.begin(300_000)
  t.ok(load.at(300_000) >= 2)
  t.ok(load.at(330_000) < 1.4)
  t.ok(load.at(300_000) >= 2, 'asked for any moment')
})
