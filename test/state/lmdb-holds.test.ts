import fc from 'fast-check'
import t from 'tap'
import { leave, renew, settle, sweep } from '../../plugins/core/balances/endings.js'
import type { Engine } from '../../plugins/core/balances/group-store.js'
import { memoryBalances } from '../../plugins/core/balances/memory.js'
import { hold, read } from '../../plugins/core/balances/rules.js'
import type { Balances } from '../../plugins/core/balances/types.js'
import { lmdbBalances } from '../../plugins/state/lmdb-balances.js'
import { LmdbGroupStores } from '../../plugins/state/lmdb-group-stores.js'
import type { Binary } from '../../plugins/state/lmdb-known.js'
import { openLmdb, type LmdbFiles } from '../../plugins/state/lmdb-open.js'

const startMs = 1_700_000_000_000
const holdTtlMs = 60_000
const groupLimits = { balance: 1_000_000 }

function ask (id: string, tokens: number, group = 'chat', isFirst = true) {
  return { id, group, groupLimits, key: 'ci', keyLimits: {}, requests: 1, tokens, floor: 1, isFirst }
}

function settlement (id: string, tokens: number, group = 'chat') {
  return { id, group, key: 'ci', tokens, late: [] }
}

/** Tells `onRead` of each look into it. */
function counted (table: Binary, onRead: () => void): Binary {
  return new Proxy(table, {
    get: (_, name) => {
      if (name === 'getBinaryFast' || name === 'getRange') onRead()
      const value: unknown = Reflect.get(table, name)
      return typeof value === 'function' ? value.bind(table) : value
    },
  })
}

async function opened (path: string): Promise<LmdbFiles> {
  return await openLmdb(path, 'boot-1')
}

t.test('holds of its own are not read again where another process wrote, unless it changed one of them', async (t) => {
  const files = await opened(t.testdir({}))
  let nowMs = startMs
  let reads = 0
  const holds = counted(files.tables.holds, () => { reads += 1 })
  const options = { holdTtlMs, now: () => nowMs }
  const one = lmdbBalances({ ...files, tables: { ...files.tables, holds } }, options)
  const other = lmdbBalances(files, options)
  for (const id of ['a', 'b', 'c']) {
    await one.hold(ask(id, 5))
    await other.hold(ask(`${id} of the other`, 5))
  }
  await one.leave('a', 'chat')
  await other.leave('a of the other', 'chat')
  await one.settle(settlement('a', 5))
  t.equal(reads, 0)
  nowMs += holdTtlMs / 2
  await one.renew('chat', ['c'])
  nowMs += holdTtlMs / 2
  await other.sweep('chat')
  await one.settle(settlement('b', 4))
  t.ok(reads > 0)
  await one.settle(settlement('c', 3))
  t.match(await one.read('chat'), { spent: 5 + 4 + 3 + 3, held: 0, active: 0 }, 'a floor each for those of the other')
  await files.close()
})

t.test('what a process reads again of its own is its own: the others know theirs as before', async (t) => {
  const files = await opened(t.testdir({}))
  let nowMs = startMs
  let reads = 0
  const holds = counted(files.tables.holds, () => { reads += 1 })
  const options = { holdTtlMs, now: () => nowMs }
  const one = lmdbBalances(files, options)
  const other = lmdbBalances({ ...files, tables: { ...files.tables, holds } }, options)
  await one.hold(ask('x', 5))
  nowMs += holdTtlMs / 2
  await one.hold(ask('y', 5))
  await other.hold(ask('z', 5))
  nowMs += holdTtlMs / 2
  await other.sweep('chat')
  const swept = reads
  await one.settle(settlement('y', 4))
  await other.leave('z', 'chat')
  t.ok(swept > 0)
  t.equal(reads, swept)
  t.match(await one.read('chat'), { spent: 5, held: 5, active: 0 })
  await files.close()
})

t.test('what a turn that failed changed of others is not taken for told', async (t) => {
  const files = await opened(t.testdir({}))
  let nowMs = startMs
  const options = { holdTtlMs, now: () => nowMs }
  const stores = new LmdbGroupStores(files.tables, new Map())
  const engine: Engine = { storeOf: stores.of, ...options }
  const turn = (work: () => void): void => files.writeBalances(() => {
    stores.begin()
    work()
    stores.end()
  })
  const other = lmdbBalances(files, options)
  await other.hold(ask('a', 5))
  turn(() => { hold(engine, ask('c', 5)) })
  t.throws(() => turn(() => {
    settle(engine, settlement('a', 5))
    stores.end()
    throw new Error('the disk is full')
  }))
  stores.forget()
  turn(() => { hold(engine, ask('b', 5)) })
  turn(() => { t.match(read(engine, 'chat'), { held: 15 }) })
  nowMs += holdTtlMs
  await other.sweep('chat')
  turn(() => { settle(engine, settlement('b', 4)) })
  t.match(await other.read('chat'), { spent: 6, held: 0, active: 0 }, 'two floors and what was settled late')
  await files.close()
})

const step = fc.record({
  writer: fc.nat(2),
  kind: fc.constantFrom('hold', 'hold', 'hold', 'again', 'leave', 'settle', 'settle', 'charge', 'renew', 'sweep'),
  group: fc.constantFrom('one', 'one', 'one', 'two', 'three'),
  id: fc.nat(40).map(String),
  tokens: fc.nat(9),
})
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never
const turns = fc.array(
  fc.record({
    steps: fc.array(step, { maxLength: 40, size: 'max' }),
    fails: fc.nat(6).map((n) => n === 0),
    waitMs: fc.constantFrom(0, 0, 0, 25_000, 61_000, 86_400_000),
  }),
  { maxLength: 12, size: 'max' }
)

t.test('in turns of three processes, some of which fail as a whole, holds end as in memory', async (t) => {
  const files = await opened(t.testdir({}))
  let nowMs = startMs
  const now = (): number => nowMs
  const writers = [2, 100_000, 100_000].map((max) => {
    const stores = new LmdbGroupStores(files.tables, new Map(), max)
    return { stores, engine: { storeOf: stores.of, now, holdTtlMs } }
  })
  const takeInMemory = async (model: Balances, { kind, id, tokens }: Step, group: string): Promise<void> => {
    if (kind === 'hold' || kind === 'again') await model.hold(ask(id, tokens, group, false))
    else if (kind === 'leave') await model.leave(id, group)
    else if (kind === 'renew') await model.renew(group, [id])
    else if (kind === 'sweep') await model.sweep(group)
    else await model.settle({ ...settlement(id, tokens, group), late: kind === 'charge' ? ['group'] : [] })
  }
  const take = (engine: Engine, { kind, id, tokens }: Step, group: string, isFirst: boolean): void => {
    if (kind === 'hold' || kind === 'again') hold(engine, ask(id, tokens, group, isFirst))
    else if (kind === 'leave') leave(engine, group, id)
    else if (kind === 'renew') renew(engine, group, [id])
    else if (kind === 'sweep') sweep(engine, group)
    else settle(engine, { ...settlement(id, tokens, group), late: kind === 'charge' ? ['group'] : [] })
  }
  let run = 0
  await fc.assert(fc.asyncProperty(turns, async (list) => {
    run += 1
    const model = memoryBalances({ now, holdTtlMs })
    const seen = new Set<string>()
    for (const { steps, fails, waitMs } of list) {
      nowMs += waitMs
      const { stores, engine } = writers[steps[0]?.writer ?? 0] ?? Object(writers[0])
      const mine = steps.map((each) => ({ ...each, of: `${run}-${each.group}` }))
      const work = (): void => files.writeBalances(() => {
        stores.begin()
        for (const each of mine) {
          const name = `${each.of} ${each.id}`
          take(engine, each, each.of, each.kind === 'hold' && !seen.has(name) && !fails)
          if (!fails && (each.kind === 'hold' || each.kind === 'again')) seen.add(name)
        }
        stores.end()
        if (fails) throw new Error('the disk is full')
      })
      if (fails) {
        t.throws(work)
        stores.forget()
        continue
      }
      work()
      for (const each of mine) await takeInMemory(model, each, each.of)
    }
    for (const group of ['one', 'two', 'three']) {
      const expected = await model.read(`${run}-${group}`)
      for (const { stores, engine } of writers) {
        files.writeBalances(() => {
          stores.begin()
          t.same(read(engine, `${run}-${group}`), expected)
          stores.end()
        })
      }
    }
  }), { numRuns: 300 })
  await files.close()
})
