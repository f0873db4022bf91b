/** Counters of the limits whose labels follow from the configuration. */
import { toldPercents } from '../core/balances/buckets.js'
import type { LimitName } from '../core/balances/types.js'
import type { ConfiguredParties } from '../core/money/budget-status.js'
import type { Gateway } from '../core/gateway.js'

/** All of them for every group: an issued key may have any limit. */
const limitNames = Object.keys({
  requests: true, tokens: true, concurrency: true, balance: true, budget: true, store: true, price: true,
} satisfies Record<LimitName | 'store' | 'price', true>)

/** Starts these counters at 0. */
export function expectCounts ({ recorder, parties }: Gateway): void {
  recorder.expect('limit_rejections_total', rejections(parties))
  recorder.expect('budget_warnings_total', warnings(parties))
}

function * rejections ({ groups }: ConfiguredParties): Generator<readonly string[]> {
  for (const { id } of groups) for (const limit of limitNames) yield [id, limit]
}

function * warnings ({ groups, keys }: ConfiguredParties): Generator<readonly string[]> {
  const owners = [...groups.map(({ id, limits }) => ({ group: id, limits })), ...keys]
  for (const { group, limits: { budgets = [] } } of owners) {
    for (const { period } of budgets) for (const percent of toldPercents) yield [group, period, String(percent)]
  }
}
