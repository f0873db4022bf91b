import type { BudgetStatus } from '../core/budget-status.js'

export interface BudgetRow extends BudgetStatus {
  /** When it begins anew, as clocks of its time zone show it; null for never. */
  readonly resets: string | null
}

/** A page that many look at asks the store no more often. */
const keepMs = 2_000

/** Budgets as the page shows them, those with the smallest share left first; null while the store does not answer. */
export class BudgetRows {
  readonly #read: () => Promise<readonly BudgetStatus[]>
  #rows: Promise<readonly BudgetRow[] | null> = Promise.resolve([])
  #readAt = -Infinity

  constructor (read: () => Promise<readonly BudgetStatus[]>) {
    this.#read = read
  }

  async rows (now = performance.now()): Promise<readonly BudgetRow[] | null> {
    if (now - this.#readAt >= keepMs) {
      this.#readAt = now
      this.#rows = this.#read().then((budgets) => budgets.map(rowOf).sort((a, b) => shareLeft(a) - shareLeft(b)), () => null)
    }
    return await this.#rows
  }
}

function rowOf (budget: BudgetStatus): BudgetRow {
  return { ...budget, resets: budget.resetsAt === null ? null : wallTime(budget.resetsAt, budget.timezone) }
}

function shareLeft ({ amount, spent, held }: BudgetStatus): number {
  return (amount - spent - held) / amount
}

/** `2026-12-01 00:00`. */
function wallTime (at: number, timeZone: string): string {
  return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' }).format(at)
}
