import type { Balances } from '../core/balances/types.js'
import type { BudgetsStatus, ConfiguredParties } from '../core/money/budget-status.js'
import type { IssuedBudgets } from './issued-budgets.js'
import { askedOf, readOne } from './read-budget.js'

/** Each is a question to the store, so further budgets are read as rarely as those of issued keys. */
const maxBudgets = 100

/** The state of the budgets: of the configuration, groups first, and of issued keys. Rejects if a store cannot answer. */
export async function readBudgets (
  balances: Balances, { groups, keys }: ConfiguredParties, issued: IssuedBudgets, currency: string
): Promise<BudgetsStatus> {
  const now = Date.now()
  const asked = [
    ...groups.map(({ id, limits }) => ({ group: id, key: null, limits })),
    ...keys.map(({ id, group, limits }) => ({ group, key: id, limits })),
  ].flatMap((party) => askedOf(party, currency, now))
  const configured = await Promise.all(asked.slice(0, maxBudgets).map(async (each) => await readOne(balances, each, currency)))
  const { budgets, ...rest } = await issued.read(currency, now, asked.slice(maxBudgets))
  return { budgets: [...configured, ...budgets], ...rest }
}
