import { setImmediate as otherWork } from 'node:timers/promises'
import type { Balances } from '../core/balances/types.js'
import { nearestFirst, type BudgetsStatus, type BudgetStatus } from '../core/money/budget-status.js'
import type { Key } from '../core/types.js'
import { askedOf, readOne, type Asked } from './read-budget.js'

const maxShown = 100
/** If there are more keys or budgets than this, some are skipped. */
const [maxKeys, maxAsked] = [10_000, 1_000]
/** Keys that are read, or budgets that are asked for at once, before other work gets its turn. */
const batch = 50
/** Shared by everybody who looks: reading is much work for a store with many keys. */
const keepMs = 10_000

type List = () => AsyncIterable<Key>

/** The state of the budgets of issued keys, and of others that may be very many: those nearest to their limits. */
export class IssuedBudgets {
  readonly #balances: Balances
  readonly #list: () => List | null
  #status: Promise<BudgetsStatus> | null = null
  #readAt = -Infinity

  constructor (balances: Balances, list: () => List | null) {
    this.#balances = balances
    this.#list = list
  }

  /** Rejects if a store cannot answer. */
  async read (currency: string, now: number, others: readonly Asked[] = []): Promise<BudgetsStatus> {
    if (this.#status === null || Math.abs(now - this.#readAt) >= keepMs) {
      this.#readAt = now
      this.#status = this.#readAll(currency, now, others).catch((error: unknown) => {
        this.#readAt = -Infinity
        throw error
      })
    }
    return await this.#status
  }

  async #readAll (currency: string, now: number, others: readonly Asked[]): Promise<BudgetsStatus> {
    const { asked, isCut } = await find(others, this.#list()?.() ?? [], currency, now)
    const budgets: BudgetStatus[] = []
    for (let at = 0; at < asked.length; at += batch) {
      const some = asked.slice(at, at + batch)
      budgets.push(...await Promise.all(some.map(async (each) => await readOne(this.#balances, each, currency))))
    }
    return { budgets: nearestFirst(budgets).slice(0, maxShown), more: Math.max(0, budgets.length - maxShown), isCut }
  }
}

/** The others, and the budgets of keys that can spend. */
async function find (
  others: readonly Asked[], keys: AsyncIterable<Key> | readonly Key[], currency: string, now: number
): Promise<{ readonly asked: readonly Asked[], readonly isCut: boolean }> {
  const asked = others.slice(0, maxAsked)
  let count = 0
  for await (const { id, group, limits, disabled, expiresAt } of keys) {
    if (count >= maxKeys || asked.length >= maxAsked) return { asked, isCut: true }
    count += 1
    if (count % batch === 0) await otherWork()
    if (!disabled && (expiresAt === null || expiresAt > now)) asked.push(...askedOf({ group, key: id, limits }, currency, now))
  }
  return { asked, isCut: others.length > maxAsked }
}
