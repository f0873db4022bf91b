import { deepStrictEqual } from 'node:assert'
import fc from 'fast-check'
import t from 'tap'
import { memoryBalances } from '../../plugins/state/index.js'
import type { Balances, Bucket, HoldAsk, Limits } from '../../plugins/state/types.js'
import { engines } from './engines.js'

const ids = ['a', 'b', 'c', 'd', 'e']
const keys = ['k1', 'k2']
const scopes = [[], ['group'], ['key'], ['group', 'key']] as const

const limit = (max: number): fc.Arbitrary<number | undefined> => fc.option(fc.integer({ min: 0, max }), { nil: undefined })
const some: fc.Arbitrary<Limits> = fc.record({
  balance: limit(300), concurrency: limit(3), requestsPerMinute: limit(4), tokensPerMinute: limit(150),
})
  .map((given) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)))
const limits = fc.oneof({ weight: 4, arbitrary: some }, { weight: 1, arbitrary: fc.constant<Limits>({}) })
const id = fc.constantFrom(...ids)
const key = fc.constantFrom(...keys)
const tokens = fc.integer({ min: 0, max: 60 })
const bucketIds = ['day', 'month', 'all']
/** What is counted in what, and until when, is the same for all asks; how much may differ. */
const buckets: fc.Arbitrary<Bucket[]> = fc.subarray(bucketIds).chain((chosen) => fc.tuple(...chosen.map((each) => fc.record({
  id: fc.constant(each),
  unit: fc.constant(each === 'day' ? 'tokens' as const : 'cost' as const),
  amount: fc.integer({ min: 1, max: 200 }),
  endsAt: fc.constant(each === 'all' ? null : 1_700_000_100_000),
}))))

type Step =
  | { readonly do: 'hold', readonly ask: Omit<HoldAsk, 'group'> }
  | {
    readonly do: 'settle'
    readonly id: string
    readonly key: string
    readonly tokens: number
    readonly cost: number
    readonly late: typeof scopes[number]
    readonly balances: typeof scopes[number] | undefined
    readonly buckets: Bucket[]
  }
  | { readonly do: 'leave' | 'renew', readonly id: string }
  | { readonly do: 'sweep' }
  | { readonly do: 'wait', readonly ms: number }

const holds: fc.Arbitrary<Step> = fc.record({
  do: fc.constant('hold' as const),
  ask: fc.record({
    id,
    key,
    groupLimits: limits,
    keyLimits: limits,
    requests: fc.constantFrom(0, 1),
    tokens,
    floor: tokens,
    cost: tokens,
    costFloor: tokens,
    keyBuckets: buckets,
    groupBuckets: buckets,
  }),
})
const others: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('settle' as const),
    id,
    key,
    tokens,
    cost: tokens,
    late: fc.constantFrom(...scopes),
    balances: fc.constantFrom(undefined, ...scopes),
    buckets,
  }),
  fc.record({ do: fc.constantFrom('leave' as const, 'renew' as const), id }),
  fc.record({ do: fc.constant('sweep' as const) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 25_000 }) })
)
/** One id belongs to one key: whoever settles is who held. */
const keyOf = (id: string): string => keys[ids.indexOf(id) % keys.length] ?? 'k1'

/** What a request is held to is fixed when it begins, however often it asks. */
function withLimitsOfOnce (steps: readonly Step[]): Step[] {
  const first = new Map<string, Pick<HoldAsk, 'groupLimits' | 'keyLimits'>>()
  return steps.map((step) => {
    if (step.do !== 'hold') return step
    const { groupLimits, keyLimits } = first.get(step.ask.id) ?? step.ask
    first.set(step.ask.id, { groupLimits, keyLimits })
    return { ...step, ask: { ...step.ask, groupLimits, keyLimits } }
  })
}

async function take (balances: Balances, group: string, step: Step): Promise<unknown> {
  if (step.do === 'hold') return await balances.hold({ ...step.ask, group, id: group + step.ask.id, key: keyOf(step.ask.id) })
  if (step.do === 'settle') {
    const { tokens, cost, late, balances: lateBalances } = step
    const lateBuckets = late.flatMap((scope) => step.buckets.map((bucket) => ({ ...bucket, scope })))
    return await balances.settle({ id: group + step.id, group, key: keyOf(step.id), tokens, cost, late, lateBuckets, lateBalances })
  }
  if (step.do === 'leave') return await balances.leave(group + step.id, group)
  if (step.do === 'renew') return await balances.renew(group, [group + step.id])
  return step.do === 'sweep' ? await balances.sweep(group) : null
}

for (const engine of engines.filter(({ name }) => name === 'lmdb' || name === 'redis')) {
  t.test(`${engine.name} decides as memory does, whatever is asked in whatever order`, { skip: engine.skip }, async (t) => {
    const { state, clock, close } = await engine.open({ holdTtlMs: 30_000 })
    t.teardown(close)
    let round = 0
    await fc.assert(fc.asyncProperty(fc.array(fc.oneof({ weight: 2, arbitrary: holds }, others), { maxLength: 40 }), async (steps) => {
      const group = `group-${round += 1}`
      const model = memoryBalances({ now: () => clock.now, holdTtlMs: 30_000 })
      for (const step of withLimitsOfOnce(steps)) {
        if (step.do === 'wait') clock.now += step.ms
        deepStrictEqual(await take(state.balances, group, step), await take(model, group, step), step.do)
        for (const each of [undefined, ...keys]) {
          deepStrictEqual(await state.balances.read(group, each), await model.read(group, each), `account after ${step.do}`)
          for (const bucket of bucketIds) {
            deepStrictEqual(
              await state.balances.readBucket(bucket, group, each), await model.readBucket(bucket, group, each), `bucket after ${step.do}`
            )
          }
        }
      }
    }), { numRuns: 150 })
    t.pass('on every account after every step')
  })
}
