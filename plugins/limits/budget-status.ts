import { billionth } from '../core/budget.js'
import type { Balances, Bucket } from '../core/balances/types.js'
import type { BudgetStatus, ConfiguredParties } from '../core/budget-status.js'
import type { Limits } from '../core/types.js'
import { bucketsOf, readBucketId } from './budgets.js'

/** Each is a question to the store. */
const maxBudgets = 100

interface Party {
  readonly group: string
  readonly key: string | null
  readonly limits: Limits
}

/** How the budgets of the configuration stand, as the store has them now: those of groups first. Rejects where it cannot answer. */
export async function readBudgets (
  balances: Balances, { groups, keys }: ConfiguredParties, currency: string, now = Date.now()
): Promise<BudgetStatus[]> {
  const parties: Party[] = [
    ...groups.map(({ id, limits }) => ({ group: id, key: null, limits })),
    ...keys.map(({ id, group, limits }) => ({ group, key: id, limits })),
  ]
  const asked = parties.flatMap((party) => (bucketsOf(party.limits, now) ?? []).map((bucket) => ({ party, bucket })))
  return await Promise.all(asked.slice(0, maxBudgets).map(async ({ party, bucket }) => await readOne(balances, party, bucket, currency)))
}

async function readOne (
  balances: Balances, { group, key }: Party, { id, unit, amount, endsAt }: Bucket, currency: string
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
