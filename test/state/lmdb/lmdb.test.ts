import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { open } from 'lmdb'
import t from 'tap'
import { inTurns } from '../../../plugins/state/lmdb/turns.js'
import { settle } from '../../../plugins/core/balances/endings.js'
import { memoryBalances } from '../../../plugins/core/balances/memory.js'
import { hold, read } from '../../../plugins/core/balances/rules.js'
import { lmdbBalances } from '../../../plugins/state/lmdb/balances.js'
import { lmdbKeys } from '../../../plugins/state/lmdb/keys.js'
import { LmdbGroupStores } from '../../../plugins/state/lmdb/group-stores.js'
import type { Binary } from '../../../plugins/state/lmdb/known.js'
import { openLmdb, readBootId, type LmdbFiles } from '../../../plugins/state/lmdb/open.js'
import type { Balances, Limits } from '../../../plugins/state/types.js'

const groupLimits: Limits = { balance: 1_000 }

function ask (id: string, tokens: number, group = 'chat') {
  return { id, group, groupLimits, key: 'ci', keyLimits: {}, requests: 1, tokens, floor: 0 }
}

async function spend (balances: Balances, id: string, tokens: number): Promise<void> {
  await balances.hold(ask(id, tokens))
  await balances.settle({ id, group: 'chat', key: 'ci', tokens, late: [] })
}

/** Tells `onRead` of each record that is read from it. */
function counted (table: Binary, onRead: () => void): Binary {
  return new Proxy(table, {
    get: (_, name) => {
      if (name === 'getBinaryFast') onRead()
      const value: unknown = Reflect.get(table, name)
      return typeof value === 'function' ? value.bind(table) : value
    },
  })
}

async function end ({ close }: LmdbFiles): Promise<void> {
  await close()
}

t.test('the system tells when it was started, or nothing', async (t) => {
  if (process.platform === 'linux') t.match(readBootId(), /^[0-9a-f-]{36}$/)
  t.equal(readBootId('/nowhere'), null)
})

t.test('balances stay where only the process ended', async (t) => {
  const path = t.testdir({})
  const first = await openLmdb(path, 'boot-1')
  const balances = lmdbBalances(first, { holdTtlMs: 60_000 })
  await spend(balances, 'a', 10)
  await balances.hold(ask('b', 5))
  await end(first)
  const second = await openLmdb(path, 'boot-1')
  const again = lmdbBalances(second, { holdTtlMs: 60_000 })
  t.match(await again.read('chat'), { spent: 10, held: 5, active: 1 })
  await again.close()
  await end(second)
})

t.test('what is held and settled in one turn is written once, as it is at its end', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  const balances = lmdbBalances(files, { holdTtlMs: 60_000 })
  const settle = async (id: string, tokens: number) => await balances.settle({ id, group: 'chat', key: 'ci', tokens, late: [] })
  const [first, second] = await Promise.all([balances.hold(ask('a', 10)), balances.hold(ask('b', 20)), settle('a', 4)])
  t.match([first, second], [{ ok: true }, { ok: true }])
  t.match(await balances.read('chat'), { spent: 4, held: 20, active: 1 })
  await Promise.all([balances.hold(ask('b', 5)), settle('b', 7), settle('b', 7)])
  t.match(await balances.read('chat'), { spent: 11, held: 0, active: 0 }, 'the second settlement finds nothing')
  await end(files)
})

t.test('of two groups whose holds have the same ids, each has its own, whoever wrote last and whatever shares a turn', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  let nowMs = 1_700_000_000_000
  const options = { holdTtlMs: 60_000, now: () => nowMs }
  const writers = [lmdbBalances(files, options), lmdbBalances(files, options)] as const
  const step = fc.record({
    writer: fc.constantFrom(0, 0, 0, 1),
    shares: fc.constantFrom(true, true, false),
    kind: fc.constantFrom('hold', 'hold', 'leave', 'settle', 'charge', 'renew', 'read', 'wait'),
    group: fc.constantFrom('one', 'two'),
    id: fc.constantFrom('a', 'a', 'b'),
    tokens: fc.nat(9),
  })
  type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never
  const take = async (balances: Balances, run: number, { kind, group, id, tokens }: Step, isFirst = false): Promise<unknown> => {
    const of = `${run}-${group}`
    if (kind === 'hold') return await balances.hold({ ...ask(id, tokens, of), isFirst })
    if (kind === 'renew') return await balances.renew(of, [id])
    if (kind === 'read') return await balances.read(of)
    if (kind === 'leave') return await balances.leave(id, of)
    return await balances.settle({ id, group: of, key: 'ci', tokens, late: kind === 'charge' ? ['group'] : [] })
  }
  let run = 0
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30, size: 'large' }), async (steps) => {
    const model = memoryBalances(options)
    run += 1
    const turn: Array<Promise<unknown>> = []
    const seen = new Set<string>()
    let last = 0
    for (const each of steps) {
      if (!each.shares || each.writer !== last || each.kind === 'wait') await Promise.all(turn.splice(0))
      last = each.writer
      if (each.kind === 'wait') {
        nowMs += 40_000
        continue
      }
      await take(model, run, each)
      const name = `${each.group} ${each.id}`
      turn.push(take(writers[each.writer === 0 ? 0 : 1], run, each, !seen.has(name)))
      if (each.kind === 'hold') seen.add(name)
    }
    await Promise.all(turn)
    for (const group of ['one', 'two']) {
      const expected = await model.read(`${run}-${group}`)
      for (const writer of writers) t.same(await writer.read(`${run}-${group}`), expected)
    }
  }), { numRuns: 300 })
  await end(files)
})

t.test('after a start of the system they are what the disk had', async (t) => {
  const path = t.testdir({})
  const first = await openLmdb(path, 'boot-1')
  const balances = lmdbBalances(first, { holdTtlMs: 60_000 })
  await spend(balances, 'a', 10)
  await balances.close()
  const unsaved = lmdbBalances(first, { holdTtlMs: 60_000 })
  await spend(unsaved, 'b', 3)
  await unsaved.hold(ask('c', 5))
  await end(first)
  const second = await openLmdb(path, 'boot-2')
  const again = lmdbBalances(second, { holdTtlMs: 60_000 })
  t.match(await again.read('chat'), { spent: 10, held: 0, active: 0 })
  await again.close()
  await end(second)
})

t.test('also where who made their file was killed before it had written what is spent', async (t) => {
  const path = t.testdir({})
  const first = await openLmdb(path, 'boot-1')
  const balances = lmdbBalances(first, { holdTtlMs: 60_000 })
  await spend(balances, 'a', 10)
  await balances.close()
  await end(first)
  const file = join(path, 'limits.mdb')
  for (const each of [file, `${file}-lock`]) rmSync(each)
  await open({ path: file, overlappingSync: false, maxDbs: 4 }).close()
  const second = await openLmdb(path, 'boot-1')
  const again = lmdbBalances(second, { holdTtlMs: 60_000 })
  t.match(await again.read('chat'), { spent: 10 })
  await again.close()
  await end(second)
})

t.test('of budgets, too, and what ended long ago goes', async (t) => {
  const path = t.testdir({})
  const first = await openLmdb(path, 'boot-1')
  const balances = lmdbBalances(first, { holdTtlMs: 60_000 })
  const groupBuckets = [
    { id: 'now', unit: 'cost', amount: 10, endsAt: null },
    { id: 'then', unit: 'tokens', amount: 10, endsAt: 1 },
    { id: 'soon', unit: 'tokens', amount: 10, endsAt: Date.now() + 60_000 },
    // Each that is made has those dropped that ended long before: the first at once, this one by the start.
    { id: 'last', unit: 'tokens', amount: 10, endsAt: 1 },
  ] as const
  await balances.hold({ ...ask('a', 5), groupBuckets, cost: 4 })
  await balances.settle({ id: 'a', group: 'chat', key: 'ci', tokens: 6, cost: 3, late: [] })
  await balances.close()
  await end(first)
  const second = await openLmdb(path, 'boot-2')
  const again = lmdbBalances(second, { holdTtlMs: 60_000 })
  t.same(await again.readBucket('now', 'chat'), { spent: 3, held: 0 })
  t.same(await again.readBucket('soon', 'chat'), { spent: 6, held: 0 })
  for (const id of ['then', 'last']) t.same(await again.readBucket(id, 'chat'), { spent: 0, held: 0 })
  await again.close()
  await end(second)
})

t.test('of two processes that note what is spent, the newer one counts', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  const one = lmdbBalances(files, { holdTtlMs: 60_000 })
  const other = lmdbBalances(files, { holdTtlMs: 60_000 })
  await spend(one, 'a', 10)
  await spend(other, 'b', 5)
  await other.close()
  t.equal(files.spent.get('g:chat'), 15)
  await one.close()
  t.equal(files.spent.get('g:chat'), 15, 'what the first one knows is older')
  await end(files)
})

t.test('each process sees what another wrote between two steps of its own', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  const one = lmdbBalances(files, { holdTtlMs: 60_000 })
  const other = lmdbBalances(files, { holdTtlMs: 60_000 })
  await one.hold(ask('a', 100))
  await other.hold(ask('b', 200))
  t.match(await one.hold(ask('c', 1)), { ok: true, left: { group: 699 } })
  await other.settle({ id: 'a', group: 'chat', key: 'ci', tokens: 50, late: [] })
  await one.settle({ id: 'a', group: 'chat', key: 'ci', tokens: 70, late: [] })
  t.match(await one.read('chat'), { spent: 50, held: 201, active: 2 }, 'what the other one settled is settled')
  await one.close()
  await other.close()
  await end(files)
})

t.test('an id that one process has used is the next one\'s alone when it uses it again', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  const one = lmdbBalances(files, { holdTtlMs: 60_000 })
  const other = lmdbBalances(files, { holdTtlMs: 60_000 })
  const settlement = { id: 'a', group: 'chat', key: 'ci', late: [] }
  const settle = async (balances: Balances, tokens: number) => await balances.settle({ ...settlement, tokens })
  await one.hold({ ...ask('a', 5), isFirst: true })
  await settle(other, 1)
  await other.hold({ ...ask('a', 5), isFirst: true })
  await settle(one, 2)
  await settle(other, 4)
  t.match(await other.read('chat'), { spent: 3, held: 0, active: 0 }, 'what is settled is settled for both')
  await one.close()
  await other.close()
  await end(files)
})

t.test('a hold that is written in the middle of a turn, for the id of another one, is told to other processes', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  let nowMs = 1_700_000_000_000
  const [one, other] = [{}, {}].map(() => lmdbBalances(files, { holdTtlMs: 60_000, now: () => nowMs }))
  await one?.hold(ask('x', 5, 'first'))
  await one?.hold(ask('y', 5, 'second'))
  await other?.hold(ask('x', 4, 'first'))
  nowMs += 30_000
  await Promise.all([one?.renew('first', ['x']), one?.leave('x', 'second')])
  await other?.hold({ ...ask('x', 3, 'first'), requests: 0 })
  nowMs += 31_000
  t.match(await other?.read('first'), { spent: 0, held: 12, active: 1 }, 'it was renewed')
  await end(files)
})

t.test('what a killed process held while the clock was ahead is free again when the time of a hold is over', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  const start = 1_700_000_000_000
  let time = start
  const balances = lmdbBalances(files, { holdTtlMs: 1_000, now: () => time })
  const one = { groupLimits: { concurrency: 1 } }
  const two = { groupLimits: { concurrency: 2 } }
  const hold = async (id: string, group: string, limits: object) => await balances.hold({ ...ask(id, 1, group), ...limits })
  const renewed = async (id: string): Promise<void> => {
    time += 500
    await balances.renew('busy', [id])
  }

  time = start + 86_400_000
  await hold('a', 'quiet', one)
  await hold('b', 'busy', two)
  time = start
  t.match(await hold('c', 'quiet', one), { ok: false }, 'it may go on')
  t.match(await hold('d', 'busy', two), { ok: true })
  for (let times = 0; times < 6; times += 1) {
    await renewed('d')
    await balances.read('busy')
  }
  t.match(await hold('e', 'quiet', one), { ok: true })
  t.match(await hold('f', 'busy', two), { ok: true }, 'also where there are others, which go on')
  t.match(await hold('g', 'busy', two), { ok: false })
  await balances.close()
  await end(files)
})

t.test('what this process alone has written is not read again, and what another one wrote is', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  let reads = 0
  const accounts = counted(files.tables.accounts, () => { reads += 1 })
  const one = lmdbBalances({ ...files, tables: { ...files.tables, accounts } }, { holdTtlMs: 60_000 })
  const other = lmdbBalances(files, { holdTtlMs: 60_000 })
  await spend(one, 'a', 5)
  const first = reads
  for (const id of ['b', 'c', 'd']) await spend(one, id, 5)
  t.equal(reads, first)
  t.match(await one.read('chat'), { spent: 20 })
  await spend(other, 'e', 5)
  t.match(await one.read('chat'), { spent: 25 })
  t.ok(reads > first)
  await one.close()
  await other.close()
  await end(files)
})

t.test('of a request that is refused nothing stays known', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  let reads = 0
  const holds = counted(files.tables.holds, () => { reads += 1 })
  const balances = lmdbBalances({ ...files, tables: { ...files.tables, holds } }, { holdTtlMs: 60_000 })
  await balances.hold(ask('a', 600))
  const before = reads
  for (let count = 1; count <= 3; count += 1) {
    t.match(await balances.hold(ask('b', 600)), { ok: false, limit: 'balance' })
    t.equal(reads, before + count)
  }
  t.match(await balances.hold({ ...ask('c', 1), isFirst: true }), { ok: true })
  t.equal(reads, before + 3, 'nobody looks for the open hold of who asks for the first time')
  await balances.close()
  await end(files)
})

t.test('what is not known any more is read again', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  const stores = new LmdbGroupStores(files.tables, new Set(), 60_000, 1)
  const turn = (work: () => void): void => files.writeBalances(() => {
    stores.begin()
    work()
    stores.end()
  })
  const engine = { storeOf: stores.of, now: () => 1_000, holdTtlMs: 60_000 }
  for (const group of ['a', 'b']) {
    turn(() => { for (const id of ['1', '2', '3']) hold(engine, { ...ask(group + id, 5, group), keyLimits: groupLimits }) })
  }
  turn(() => {
    for (let again = 0; again < 2; again += 1) settle(engine, { id: 'a1', group: 'a', key: 'ci', tokens: 1, late: [] })
    t.throws(() => hold(engine, ask('x'.repeat(3_000), 1)), { message: /so long a name/ })
  })
  for (const [group, spent, held] of [['a', 1, 10], ['b', 0, 15]] as const) {
    turn(() => {
      t.match(read(engine, group, 'other'), { spent: 0, held: 0 })
      t.match(read(engine, group, 'ci'), { spent, held })
    })
  }
  await end(files)
})

t.test('without a start to tell by, every write is on the disk and nothing is made anew', async (t) => {
  const path = t.testdir({})
  for (const spent of [7, 14]) {
    const files = await openLmdb(path, null)
    const balances = lmdbBalances(files, { holdTtlMs: 60_000 })
    await spend(balances, `a${spent}`, 7)
    t.match(await balances.read('chat'), { spent })
    await balances.close()
    await end(files)
  }
})

t.test('one step that cannot be taken fails alone', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  const balances = lmdbBalances(files, { holdTtlMs: 60_000 })
  const [long, other] = await Promise.allSettled([balances.hold(ask('a', 1, 'x'.repeat(3_000))), balances.hold(ask('b', 1))])
  t.match(long, { status: 'rejected', reason: { code: 'LLM_GATEWAY_STORE_DOWN', asked: false, refused: true } })
  t.match(other, { status: 'fulfilled', value: { ok: true } })
  const turns = inTurns((work) => work())
  const cannot = turns.soon(() => { throw new RangeError('it cannot be read') })
  t.match(await Promise.allSettled([cannot, turns.soon(() => 7)]), [
    { status: 'rejected', reason: { code: 'LLM_GATEWAY_STORE_DOWN', asked: true, refused: true, cause: { message: 'it cannot be read' } } },
    { status: 'fulfilled', value: 7 },
  ])
  await balances.close()
  await end(files)
  const closed = await Promise.allSettled([balances.hold(ask('c', 1)), balances.hold(ask('d', 1))])
  for (const each of closed) t.match(each, { status: 'rejected', reason: { message: /closed/ } })
})

t.test('a disk that is full loses nothing that was spent, and refuses what keys change', async (t) => {
  let isFull = false
  const path = t.testdir({})
  const files = await openLmdb(path, 'boot-1', () => !isFull)
  const balances = lmdbBalances(files, { holdTtlMs: 60_000 })
  const keys = lmdbKeys(files)
  await spend(balances, 'a', 10)
  isFull = true
  const key = { id: 'a', digest: 'a', group: 'chat', disabled: false, expiresAt: null, limits: {}, label: null, createdAt: 1 }
  await t.rejects(keys.create(key), { message: `the disk of ${path} is full` })
  await balances.close()
  isFull = false
  t.equal(files.spent.get('g:chat'), undefined)
  await balances.close()
  t.equal(files.spent.get('g:chat'), 10)
  await keys.close()
  await end(files)
})

t.test('limits take no more of the disk than at their first start, so that they go on where it is full', async (t) => {
  const path = t.testdir({})
  const files = await openLmdb(path, 'boot-1')
  const balances = lmdbBalances(files, { holdTtlMs: 60_000 })
  const { size } = statSync(join(path, 'limits.mdb'))
  for (let turn = 0; turn < 200; turn += 1) {
    await Promise.all(Array.from({ length: 20 }, async (_, n) => {
      const decision = await balances.hold({ ...ask(`${turn} ${n}`, 1), key: `key ${n}`, groupLimits: {}, keyLimits: groupLimits })
      if (turn % 2 === 0 && decision.ok) await spend(balances, `again ${turn} ${n}`, 1)
    }))
  }
  t.equal(statSync(join(path, 'limits.mdb')).size, size)
  t.ok(size < 8_000_000, `${size} bytes`)
  await balances.close()
  await end(files)

  await t.rejects(openLmdb(join(path, 'full'), 'boot-1', () => false), { message: /^the folder .*full of the state cannot be used: its disk is full$/ })
  const none = await openLmdb(join(path, 'none'), 'boot-1', (_, bytes = 0) => bytes === 0)
  t.ok(statSync(join(path, 'none', 'limits.mdb')).size < 1_000_000, 'and takes nothing in advance of a disk that has little')
  await end(none)
})
