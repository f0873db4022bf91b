import type { ConfiguredParties } from '../core/money/budget-status.js'
import { OptionError } from '../core/config/options.js'
import type { Limits } from '../core/types.js'

/** Throws `LLM_GATEWAY_OPTION` for a budget in money without prices: it would refuse every request. */
export function refuseUnpriced ({ groups, keys }: ConfiguredParties): void {
  for (const { id, limits } of groups) refuseMoney(`groups.${id}`, limits)
  for (const [at, { limits }] of keys.entries()) refuseMoney(`keys[${at}]`, limits)
}

function refuseMoney (at: string, { budgets = [] }: Limits): void {
  const index = budgets.findIndex(({ cost }) => cost !== undefined)
  if (index >= 0) throw new OptionError(`${at}.limits.budgets[${index}].cost`, 'needs prices: without a price list nothing costs anything')
}
