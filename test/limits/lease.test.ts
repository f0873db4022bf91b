import t from 'tap'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import type { Bucket, HoldAsk, Left } from '../../plugins/core/balances/types.js'
import type { Group, Key, Limits } from '../../plugins/core/types.js'
import { StoreDownError } from '../../plugins/core/balances/store-down.js'
import { Admission } from '../../plugins/limits/admission.js'
import { Lease } from '../../plugins/limits/lease.js'
import { Outage } from '../../plugins/limits/outage.js'
import { Outbox } from '../../plugins/limits/outbox.js'
import { StoreSide } from '../../plugins/limits/store-side.js'
import { ticketOf, type Ticket } from '../../plugins/limits/ticket.js'
import { memoryBalances, type Balances } from '../../plugins/state/index.js'
import { requestTo } from '../upstreams/request.js'

interface Desk {
  readonly admission: Admission
  readonly settled: string[]
  down: Error | null
  /** Until then a settlement is on its way. */
  arrival: Promise<void>
  readonly enter: (hasLeft?: boolean) => Promise<{ readonly llm: ModelCall, readonly answer: string }>
  readonly end: (llm: ModelCall) => Promise<void>
}

const key: Key = { id: 'k', group: 'all', disabled: false, expiresAt: null, limits: {} }

function groupOf (onStoreFailure: Group['onStoreFailure']): Group {
  return {
    id: 'all', protocols: new Set(), thirdParty: true, upstream: null, models: null, limits: { requestsPerMinute: 30 }, onStoreFailure,
  }
}

function admissionOf (side: StoreSide, outbox = new Outbox(side.backlog, { onLost: () => {} })): Admission {
  return new Admission(side, outbox, new Outage(10, side, () => {}), () => {})
}

/** Limits in front of a store that can be taken away. */
function desk (onStoreFailure: Group['onStoreFailure'], maxWaiting = 100): Desk {
  const memory = memoryBalances()
  const settled: string[] = []
  const balances: Balances = {
    ...memory,
    hold: async (ask) => {
      if (made.down !== null) throw made.down
      return await memory.hold(ask)
    },
    settle: async (settlement) => {
      settled.push(settlement.id)
      await made.arrival
      return await memory.settle(settlement)
    },
  }
  const side = new StoreSide(balances, { maxWaiting, retryMs: 5 })
  const outbox = new Outbox(side.backlog, { onLost: () => {}, onSettled: () => {} })
  const admission = admissionOf(side, outbox)
  const group = groupOf(onStoreFailure)
  const made: Desk = {
    admission,
    settled,
    down: null,
    arrival: Promise.resolve(),
    enter: async (hasLeft = false) => {
      const llm = requestTo('/v1/chat/completions')
      const ticket = admission.begin(llm, key, group, 'USD')
      const asked = admission.enter(ticket)
      if (hasLeft) admission.settle(ticket, { tokens: 0, cost: 0 })
      const answer = await asked
      return { llm, answer: answer === 'store down' ? answer : answer.ok ? 'ok' : answer.limit }
    },
    end: async (llm) => {
      const ticket = ticketOf(llm)
      if (ticket !== undefined) admission.settle(ticket, { tokens: 0, cost: 0 })
      for (let i = 0; i < 20; i += 1) await new Promise(setImmediate)
    },
  }
  return made
}

t.test('a store that throws at once is away like one whose promise rejects', async (t) => {
  for (const [onStoreFailure, expected] of [['closed', 'store down'], ['local', 'ok']] as const) {
    const side = new StoreSide({ ...memoryBalances(), hold: () => { throw new Error('away') } }, { maxWaiting: 1, retryMs: 5 })
    const admission = admissionOf(side)
    const answer = await admission.enter(admission.begin(requestTo('/v1/chat/completions'), key, groupOf(onStoreFailure), 'USD'))
    t.equal(answer === 'store down' ? answer : answer.ok && 'ok', expected)
  }
})

t.test('a store that was not even asked has nothing to be given back', async (t) => {
  for (const [asked, settlements] of [[false, 0], [true, 1]] as const) {
    const each = desk('closed')
    each.down = new StoreDownError('does not answer', { asked })
    t.equal((await each.enter()).answer, 'store down')
    for (let i = 0; i < 20; i += 1) await new Promise(setImmediate)
    t.equal(each.settled.length, settlements)
  }
  const broken = desk('closed')
  broken.down = new Error('timed out')
  await broken.enter()
  for (let i = 0; i < 20; i += 1) await new Promise(setImmediate)
  t.equal(broken.settled.length, 1, 'of any other error nobody knows')
})

t.test('each outage has a lease of its own', async (t) => {
  const each = desk('local')
  for (let outage = 0; outage < 3; outage += 1) {
    each.down = new StoreDownError('does not answer', { asked: false })
    const answers: string[] = []
    for (let i = 0; i < 5; i += 1) {
      const { llm, answer } = await each.enter()
      answers.push(answer)
      if (answer === 'ok') await each.end(llm)
    }
    t.strictSame(answers, ['ok', 'ok', 'ok', 'requests', 'requests'], 'a tenth of thirty')
    each.down = null
    const { llm, answer } = await each.enter()
    t.equal(answer, 'ok', 'the store is back')
    await each.end(llm)
  }
})

t.test('a share that requests still run on is given nobody anew, though the store answers meanwhile', async (t) => {
  const each = desk('local')
  const away = new StoreDownError('does not answer', { asked: false })
  const ask = async (down: Error | null): Promise<Awaited<ReturnType<Desk['enter']>>> => await Object.assign(each, { down }).enter()
  const running = [await ask(away), await ask(away), await ask(away)]
  const answers = [(await ask(null)).answer, (await ask(away)).answer]
  each.down = null
  for (const { llm } of running) await each.end(llm)
  t.strictSame([...answers, (await ask(null)).answer, (await ask(away)).answer], ['ok', 'requests', 'ok', 'ok'])
})

t.test('nor while what was spent of it is on its way to the store', async (t) => {
  for (const reaches of [true, false]) {
    const each = desk('local')
    const away = new StoreDownError('does not answer', { asked: false })
    const ask = async (down: Error | null): Promise<Awaited<ReturnType<Desk['enter']>>> => await Object.assign(each, { down }).enter()
    const spent = [await ask(away), await ask(away), await ask(away)]
    let arrive = (): void => {}
    let fail = (): void => {}
    each.arrival = new Promise((resolve, reject) => {
      arrive = resolve
      fail = () => reject(away)
    })
    for (const { llm } of spent) await each.end(llm)
    const answers = [(await ask(null)).answer, (await ask(away)).answer]
    if (reaches) arrive()
    else fail()
    await new Promise(setImmediate)
    answers.push((await ask(null)).answer, (await ask(away)).answer)
    t.strictSame(answers, ['ok', 'requests', 'ok', reaches ? 'ok' : 'requests'])
  }
})

t.test('who could not be told to the store later is not let in', async (t) => {
  for (const [maxWaiting, answer] of [[0, 'store down'], [1, 'ok']] as const) {
    const each = desk('local', maxWaiting)
    each.down = new StoreDownError('does not answer', { asked: false })
    t.equal((await each.enter()).answer, answer)
  }
})

t.test('who has left by the time that the store is known to be away takes nothing of the share', async (t) => {
  const each = desk('local')
  each.down = new StoreDownError('does not answer', { asked: false })
  const answers: string[] = []
  for (const hasLeft of [true, true, true, false, false, false, false]) answers.push((await each.enter(hasLeft)).answer)
  t.strictSame(answers, ['store down', 'store down', 'store down', 'ok', 'ok', 'ok', 'requests'])
})

t.test('a share is held as long as its request runs, however long the store is away', async (t) => {
  let now = Date.now()
  t.intercept(Date, 'now', { value: () => now })
  const lease = new Lease(10)
  const hold = async (id: string): Promise<unknown> => await lease.hold({
    id, group: 'all', groupLimits: { concurrency: 10, balance: 1_000 }, key: 'k', keyLimits: {}, requests: 1, tokens: 60, floor: 1,
  }, { group: 1_000, key: null }, () => 0)
  t.match(await hold('a'), { ok: true })
  now += 3_600_000
  t.match(await hold('b'), { ok: false, limit: 'balance', free: 40 })
  await lease.balances.settle({ id: 'a', group: 'all', key: 'k', tokens: 5, late: [] })
  t.match(await hold('b'), { ok: true })
})

t.test('a group that cannot be renewed keeps no other from it', async (t) => {
  const renewed: Array<readonly [string, number]> = []
  const balances: Balances = {
    ...memoryBalances(),
    renew: async (group, ids) => {
      if (group === 'odd') throw new StoreDownError('failed')
      renewed.push([group, ids.length])
    },
  }
  const side = new StoreSide(balances)
  const admission = admissionOf(side)
  for (const id of ['odd', 'all', 'more', 'all', 'all']) {
    const limits = { concurrency: 1 }
    const group: Group = { id, protocols: new Set(), thirdParty: true, upstream: null, models: null, limits, onStoreFailure: 'local' }
    admission.begin(requestTo('/v1/chat/completions'), { id: 'k', group: id, disabled: false, expiresAt: null, limits: {} }, group, 'USD')
  }
  await admission.renew()
  t.same(renewed, [['all', 3], ['more', 1]], 'each of a group')
})

const nothingLeft = { group: null, key: null }
const unlimited = { group: 'all', key: 'k', groupLimits: {}, keyLimits: {}, requests: 1, floor: 0 }

/** How many of ten requests of so many tokens a lease of a tenth lets in. */
async function letIn (limits: Partial<HoldAsk>, tokens: number, lefts: readonly Left[] = []): Promise<number> {
  const lease = new Lease(10)
  let count = 0
  for (let i = 0; i < 10; i += 1) {
    // What is left later is no part of it, and may be more: requests of before the outage give back what they did not use.
    const inBucket = ({ amount }: Bucket): number => i === 0 ? amount * 2 / 3 : amount
    const { ok } = await lease.hold({ ...unlimited, ...limits, id: `r${i}`, tokens }, lefts[i] ?? nothingLeft, inBucket)
    count += Number(ok)
  }
  return count
}

t.test('what is left is known after each answer and each end: a share is a part of it', async (t) => {
  const balances = memoryBalances()
  const side = new StoreSide(balances)
  const admission = admissionOf(side)
  const limits: Limits = { balance: 100, budgets: [{ cost: 1, period: 'total' }] }
  const group = { ...groupOf('local'), limits }
  const begin = (): Ticket => admission.begin(requestTo('/v1/chat/completions'), key, group, 'USD')
  const left = ({ parties }: Ticket): unknown => {
    const [bucket] = parties.groupBuckets ?? []
    return [side.lastKnown.left(parties).group, bucket && side.lastKnown.leftIn('all', bucket)]
  }
  const ticket = begin()
  await admission.hold(ticket, { tokens: 30, cost: 3e8 }, { tokens: 5, cost: 1e8 })
  t.same(left(ticket), [70, 7e8])
  admission.settle(ticket, { tokens: 10, cost: 1e8 })
  t.same(left(ticket), [90, 9e8])
  const another = { group: 'all', groupLimits: limits, key: 'k', keyLimits: {}, id: 'another', requests: 1, tokens: 50, floor: 50 }
  await balances.hold(another)
  const late = begin()
  t.match(await admission.hold(late, { tokens: 60, cost: 3e8 }, { tokens: 60, cost: 3e8 }), { ok: false, limit: 'balance', free: 40 })
  t.same(left(late), [40, 9e8])
  admission.settle(late, { tokens: 0, cost: 0 })
  t.same(left(late), [40, 9e8], 'what was refused is not given back')
  balances.hold = () => { throw new StoreDownError('does not answer', { asked: false }) }
  const refused = admission.begin(requestTo('/v1/chat/completions'), key, { ...group, onStoreFailure: 'closed' }, 'USD')
  t.equal(await admission.hold(refused, { tokens: 7, cost: 1e8 }, { tokens: 7, cost: 1e8 }), 'store down')
  admission.settle(refused, { tokens: 0, cost: 0 })
  t.same(left(refused), [40, 9e8], 'nor what nobody was asked for')
  const [bucket] = late.parties.groupBuckets ?? []
  t.equal(bucket && side.lastKnown.leftIn('all', { ...bucket, id: `${bucket.id}1` }), 1e9, 'and of another period nothing is known')
})

const balance: Limits = { balance: 100 }
for (const [whose, groupLimits, keyLimits] of [
  ['a balance', balance, {}],
  ['the balance of a key', {}, balance],
  ['a budget', { budgets: [{ tokens: 100, period: 'total' }] }, {}],
] satisfies Array<[string, Limits, Limits]>) {
  t.test(`in an outage a request gets a share of what is left of ${whose}, with what was given back`, async (t) => {
    const memory = memoryBalances()
    let isAway = false
    const side = new StoreSide({
      ...memory,
      hold: async (ask) => {
        if (isAway) throw new StoreDownError('does not answer', { asked: false })
        return await memory.hold(ask)
      },
    })
    const admission = admissionOf(side)
    const group = { ...groupOf('local'), limits: groupLimits }
    const ask = async (tokens: number): Promise<Ticket | null> => {
      const ticket = admission.begin(requestTo('/v1/chat/completions'), { ...key, limits: keyLimits }, group, 'USD')
      const answer = await admission.hold(ticket, { tokens, cost: 0 }, { tokens, cost: 0 })
      return answer !== 'store down' && answer.ok ? ticket : null
    }
    for (const [held, used] of [[20, 20], [60, 20]] as const) {
      const ticket = await ask(held)
      if (ticket !== null) admission.settle(ticket, { tokens: used, cost: 0 })
    }
    isAway = true
    t.strictSame([await ask(7) === null, await ask(6) !== null], [true, true], 'a tenth of 60')
  })
}

t.test('a lease has its share of every limit, of the key and of the group', async (t) => {
  const cases: ReadonlyArray<readonly [limits: Limits, tokens: number, count: number]> = [
    [{ requestsPerMinute: 30 }, 0, 3],
    [{ tokensPerMinute: 1_000 }, 50, 2],
    [{ concurrency: 20 }, 0, 2],
    [{ concurrency: 5 }, 0, 1],
    [{ balance: 1_000 }, 30, 3],
    [{}, 30, 10],
  ]
  for (const [limits, tokens, count] of cases) {
    t.equal(await letIn({ groupLimits: limits }, tokens), count, `group ${JSON.stringify(limits)}`)
    t.equal(await letIn({ keyLimits: limits }, tokens), count, `key ${JSON.stringify(limits)}`)
  }
})

t.test('of a balance and of a budget it is a share of what was left when the outage began, once', async (t) => {
  const lefts = [{ group: 600, key: null }, { group: 1_000_000, key: null }]
  t.equal(await letIn({ groupLimits: { balance: 1_000 } }, 30, lefts), 2)
  t.equal(await letIn({ groupLimits: { balance: 1_000 } }, 30, [{ group: -5, key: null }]), 0, 'overspent')
  const bucket = { id: 'day', unit: 'tokens', amount: 900, endsAt: null } as const
  const limits = { budgets: [] }
  t.equal(await letIn({ groupLimits: limits, groupBuckets: [bucket] }, 30), 2, 'budget of the group')
  t.equal(await letIn({ keyLimits: limits, keyBuckets: [bucket] }, 30), 3, 'budget of the key')
})
