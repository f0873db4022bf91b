import { nearestFirst, type BudgetsStatus, type BudgetStatus } from '../core/money/budget-status.js'

interface BudgetRow extends BudgetStatus {
  /** When it resets, in the local time of its time zone; null for never. */
  readonly resets: string | null
}

export interface BudgetTable {
  /** Those with the smallest remaining share first; null while the store does not answer. */
  readonly budgets: readonly BudgetRow[] | null
  readonly moreBudgets: number
  /** There may be more than those. */
  readonly budgetsCut: boolean
}

/** However many people look at the page, the store is asked no more often. */
const keepMs = 2_000

const unknown: BudgetTable = { budgets: null, moreBudgets: 0, budgetsCut: false }

/** Returns the budgets as the page shows them. */
export function budgetTables (read: () => Promise<BudgetsStatus>): (now?: number) => Promise<BudgetTable> {
  let table = Promise.resolve(unknown)
  let readAt = -Infinity
  return async (now = performance.now()) => {
    if (now - readAt >= keepMs) {
      readAt = now
      table = read().then(tableOf, () => unknown)
    }
    return await table
  }
}

function tableOf ({ budgets, more, isCut }: BudgetsStatus): BudgetTable {
  return { budgets: nearestFirst(budgets).map(rowOf), moreBudgets: more, budgetsCut: isCut }
}

function rowOf (budget: BudgetStatus): BudgetRow {
  return { ...budget, resets: budget.resetsAt === null ? null : wallTime(budget.resetsAt, budget.timezone) }
}

/** `2026-12-01 00:00`. */
function wallTime (at: number, timeZone: string): string {
  return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' }).format(at)
}
