import { checkBudgets } from '../core/money/budget.js'
import { didYouMean } from '../core/config/did-you-mean.js'
import { OptionError } from '../core/config/options.js'
import type { Limits } from '../core/types.js'

/** The lowest value of each limit. Only a balance may be 0: it can be filled again, while a rate of 0 would never let a request pass. */
const leastLimits: ReadonlyMap<string, number> = new Map([
  ['requestsPerMinute', 1], ['tokensPerMinute', 1], ['concurrency', 1], ['balance', 0],
])

/** Throws `LLM_GATEWAY_OPTION` for a limit that is not known or no whole number. */
export function checkLimits (at: string, { budgets, ...limits }: Limits): void {
  if (budgets !== undefined) checkBudgets(`${at}.budgets`, budgets)
  for (const [name, value] of Object.entries(limits)) {
    const least = leastLimits.get(name)
    if (least === undefined) throw new OptionError(`${at}.${name}`, `is not known${didYouMean(name, [...leastLimits.keys(), 'budgets'])}`)
    if (!Number.isSafeInteger(value) || value < least) throw new OptionError(`${at}.${name}`, `must be a whole number of at least ${least}`)
  }
}
