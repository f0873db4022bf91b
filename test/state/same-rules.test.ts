import { deepStrictEqual } from 'node:assert'
import fc from 'fast-check'
import t from 'tap'
import { memoryBalances } from '../../plugins/state/index.js'
import type { Balances, Bucket, Limits, Parties, Scope } from '../../plugins/state/types.js'
import { engines } from './engines.js'

const ids = ['a', 'b', 'c', 'd', 'e']
const keys = ['k1', 'k2']
const both = ['key', 'group'] as const
const scopes = [[], ['group'], ['key'], ['group', 'key']] as const
const minuteMs = 60_000
const hourMs = 60 * minuteMs

const limit = (max: number): fc.Arbitrary<number | undefined> => fc.option(fc.integer({ min: 0, max }), { nil: undefined })
const some: fc.Arbitrary<Limits> = fc.record({
  balance: limit(300), concurrency: limit(3), requestsPerMinute: limit(4), tokensPerMinute: limit(150),
})
  .map((given) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)))
const limits = fc.oneof({ weight: 4, arbitrary: some }, { weight: 1, arbitrary: fc.constant<Limits>({}) })
type ValueOf<T> = T extends fc.Arbitrary<infer Value> ? Value : never
const id = fc.constantFrom(...ids)
const tokens = fc.integer({ min: 0, max: 60 })
/** Of a request that has no price, none is given. */
const costs = fc.record({ cost: tokens, costFloor: tokens }, { requiredKeys: [] })

/** What is counted in what, and until when, is the same for all asks; how much may differ, and whether an older version asks. */
const budgets = fc.subarray(['minute', 'all']).chain((chosen) => fc.tuple(...chosen.map((name) => fc.record({
  name: fc.constant(name), amount: fc.integer({ min: 1, max: 200 }), isOld: fc.boolean(),
}))))
type Budget = ValueOf<typeof budgets>[number]

/** Takes over only in those of a key, which is asked first: where it refuses, engines differ in whether the group's do so already. */
function bucketOf ({ name, amount, isOld }: Budget, scope: Scope, now: number): Bucket {
  if (name === 'all') return { id: name, unit: 'cost', amount, endsAt: null }
  const minute = Math.floor(now / minuteMs)
  const [former, id] = [`former ${minute}`, `minute ${minute}`]
  const bucket: Bucket = { id, unit: 'tokens', amount, endsAt: (minute + 1) * minuteMs }
  if (isOld) return { ...bucket, id: former }
  return scope === 'key' ? { ...bucket, formerId: former } : bucket
}

const holds = fc.record({
  do: fc.constant('hold' as const),
  id,
  limits: fc.record({ groupLimits: limits, keyLimits: limits }),
  amounts: fc.record({ requests: fc.constantFrom(0, 1), tokens, floor: tokens }),
  costs,
  budgets: fc.record({ key: budgets, group: budgets }),
})
const others = fc.oneof(
  fc.record({
    do: fc.constant('settle' as const),
    id,
    tokens,
    costs: fc.record({ cost: tokens }, { requiredKeys: [] }),
    late: fc.constantFrom(...scopes),
    lateBalances: fc.constantFrom(undefined, ...scopes),
    budgets,
  }),
  fc.record({ do: fc.constant('leave' as const), id }),
  fc.record({ do: fc.constant('renew' as const), id }),
  fc.record({ do: fc.constant('read' as const) })
)
const step = fc.oneof({ weight: 2, arbitrary: holds }, others)
type Step = ValueOf<typeof step>

/**
 * Steps of one turn of the event loop, or milliseconds that pass. Two of these together are as long as what is counted by the minute.
 * Before a clock is set back, everything is settled.
 */
const turns = fc.array(fc.oneof(
  { weight: 8, arbitrary: fc.array(step, { minLength: 1, maxLength: 3 }) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 25_000 }) },
  { weight: 2, arbitrary: fc.constantFrom(20_000, 41_000) },
  { weight: 1, arbitrary: fc.constantFrom(26 * hourMs, -hourMs) }
), { maxLength: 40 })
const settleAll = ids.map((id): Step => {
  return { do: 'settle', id, tokens: 9, costs: { cost: 9 }, late: [], lateBalances: undefined, budgets: [] }
})

/** One id belongs to one key: whoever settles is who held. */
const keyOf = (id: string): string => keys[ids.indexOf(id) % keys.length] ?? 'k1'

type Known = Omit<Parties, 'group' | 'key'>
type Take = (balances: Balances) => unknown

/** A step of a group. `asked`: what each id is held to, which is fixed when it begins, however often it asks. */
function taking (group: string, step: Step, now: number, asked: Map<string, Known>): Take {
  if (step.do === 'read') return async (balances) => await balances.read(group)
  const id = group + step.id
  const key = keyOf(step.id)
  if (step.do === 'leave') return async (balances) => await balances.leave(id, group)
  if (step.do === 'renew') return async (balances) => await balances.renew(group, [id, 'nobody'])
  if (step.do === 'settle') {
    const { tokens, costs, late, lateBalances } = step
    const lateBuckets = late.flatMap((scope) => step.budgets.map((each) => ({ ...bucketOf(each, scope, now), scope })))
    return async (balances) => await balances.settle({ id, group, key, tokens, ...costs, late, lateBuckets, lateBalances })
  }
  const isFirst = !asked.has(id)
  const [keyBuckets, groupBuckets] = both.map((scope) => step.budgets[scope].map((each) => bucketOf(each, scope, now)))
  const known = asked.get(id) ?? { ...step.limits, keyBuckets, groupBuckets }
  asked.set(id, known)
  return async (balances) => await balances.hold({ id, group, key, isFirst, ...known, ...step.amounts, ...step.costs })
}

/** Every account, and every bucket of this minute and the one before. */
async function countsOf (balances: Balances, group: string, now: number): Promise<unknown[]> {
  const minute = Math.floor(now / minuteMs)
  const buckets = ['all', `former ${minute}`, `minute ${minute}`, `former ${minute - 1}`, `minute ${minute - 1}`]
  return await Promise.all([undefined, ...keys].flatMap((key) => [
    balances.read(group, key), ...buckets.map((bucket) => balances.readBucket(bucket, group, key)),
  ]))
}

for (const engine of engines.filter(({ name }) => name === 'lmdb' || name === 'redis')) {
  t.test(`${engine.name} decides as memory does, whatever two processes ask in whatever order`, { skip: engine.skip }, async (t) => {
    const { state, clock, another, close } = await engine.open({ holdTtlMs: 30_000 })
    t.teardown(close)
    const processes = [state.balances, (await another?.())?.balances ?? state.balances] as const
    let round = 0
    await fc.assert(fc.asyncProperty(turns, async (given) => {
      const group = `group-${round += 1}`
      const model = memoryBalances({ now: () => clock.now, holdTtlMs: 30_000 })
      const asked = new Map<string, Known>()
      for (const [at, turn] of given.entries()) {
        const [one, other] = at % 2 === 0 ? processes : processes.toReversed()
        const steps = turn === -hourMs ? settleAll : typeof turn === 'number' ? [] : turn
        const takes = steps.map((step) => taking(group, step, clock.now, asked))
        deepStrictEqual(await Promise.all(takes.map((take) => take(one))), await Promise.all(takes.map((take) => take(model))))
        if (typeof turn === 'number') clock.now += turn
        // What is forgotten after two days is not asked for.
        if (turn === 26 * hourMs) asked.clear()
        deepStrictEqual(await countsOf(other, group, clock.now), await countsOf(model, group, clock.now))
      }
    }), { numRuns: 150 })
    t.pass('on every account after every turn')
  })
}
