import type { Bindings } from './bindings.js'
import type { AttemptResult } from './judgement.js'
import type { RetryBudget } from './retry-budget.js'

/** What all attempts of an app share. */
export interface Surroundings {
  readonly bindings: Bindings
  readonly budget: RetryBudget
  readonly attempted: (upstream: string, result: AttemptResult) => void
  readonly failedOver: (pool: string, reason: string) => void
  readonly now: () => number
  readonly random: () => number
}
