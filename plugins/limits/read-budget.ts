import { billionth } from '../core/money/budget.js'
import type { Balances, Bucket } from '../core/balances/types.js'
import type { BudgetStatus } from '../core/money/budget-status.js'
import type { Limits } from '../core/types.js'
import { currentBuckets, readBucketId } from './budgets.js'

interface Party {
  readonly group: string
  readonly key: string | null
  readonly limits: Limits
}

/** A budget that the store can be asked for. */
export interface Asked {
  readonly party: Party
  readonly bucket: Bucket
}

export function askedOf (party: Party, currency: string, now: number): Asked[] {
  return (currentBuckets(party.limits, currency, now) ?? []).map((bucket) => ({ party, bucket }))
}

export async function readOne (
  balances: Balances, { party: { group, key }, bucket: { id, unit, amount, endsAt } }: Asked, currency: string
): Promise<BudgetStatus> {
  const { spent, held } = await balances.readBucket(id, group, key ?? undefined)
  const { period, timezone } = readBucketId(id)
  const scale = unit === 'cost' ? billionth : 1
  return {
    group,
    key,
    unit: unit === 'cost' ? currency : 'tokens',
    period,
    timezone,
    amount: amount * scale,
    spent: spent * scale,
    held: held * scale,
    resetsAt: endsAt,
  }
}
