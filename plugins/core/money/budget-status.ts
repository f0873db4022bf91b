/** Configured budgets and their state: read by auth, counted by limits, shown by the console. */
import type { Period } from './budget.js'
import type { Group, Key } from '../types.js'

/** Groups and keys of the configuration; keys of a store or a lookup are not among them. */
export interface ConfiguredParties {
  readonly groups: readonly Group[]
  readonly keys: readonly Key[]
}

/** One budget in its current period. Amounts are tokens, or units of the currency as floats, for display only. */
export interface BudgetStatus {
  readonly group: string
  /** Null for a budget of the group. */
  readonly key: string | null
  /** `tokens`, or the code of the currency. */
  readonly unit: string
  readonly period: Period
  readonly timezone: string
  readonly amount: number
  readonly spent: number
  /** Set aside for requests that run. */
  readonly held: number
  /** Milliseconds since the epoch; null for never. */
  readonly resetsAt: number | null
}

export interface BudgetsStatus {
  readonly budgets: readonly BudgetStatus[]
  /** How many further ones are left out, which are further from their limits. */
  readonly more: number
  /** Some budgets were not read at all. */
  readonly isCut: boolean
}

/** 1 of one that is untouched; below 0 of one that is overspent. */
function shareLeft ({ amount, spent, held }: BudgetStatus): number {
  return (amount - spent - held) / amount
}

/** Those nearest to their limits first. */
export function nearestFirst<T extends BudgetStatus> (budgets: readonly T[]): T[] {
  return [...budgets].sort((a, b) => shareLeft(a) - shareLeft(b))
}
