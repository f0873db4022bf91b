import { isRefused, maxRefusals } from '../core/balances/store-down.js'
import type { Balances, LostListener, Settled, SettledListener, Settlement } from '../core/balances/types.js'

export interface BacklogOptions {
  /** With so many settlements that wait for the store, nobody is let in without it. Charges of who is in wait all the same. */
  readonly maxWaiting: number
  readonly retryMs: number
}

export interface SettlementListeners {
  /** It is given up: left to the sweeper, or to the next start. */
  readonly onLost: LostListener
  /** The settlement is in the store, which says what it made budgets reach. */
  readonly onSettled?: SettledListener
}

const atOnce = 100

interface Waiting {
  readonly settlement: Settlement
  /** Those of its app. */
  listeners: SettlementListeners
  /** How often the store was there and did not take it. */
  refusals: number
}

/**
 * Settlements that a store could not take yet. When an app ends, its settlements move to another app that counts in the same store, such
 * as the one that replaced it at a reload.
 */
export class Backlog {
  readonly #balances: Balances
  readonly #options: BacklogOptions
  readonly #apps = new Set<SettlementListeners>()
  #waiting: Waiting[] = []
  #flushing: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined

  constructor (balances: Balances, options: BacklogOptions) {
    this.#balances = balances
    this.#options = options
  }

  get empty (): boolean {
    return this.#waiting.length === 0
  }

  get full (): boolean {
    return this.#waiting.length >= this.#options.maxWaiting
  }

  join (listeners: SettlementListeners): void {
    this.#apps.add(listeners)
  }

  /** When the last app leaves, what still waits is given up: after one more try, or once it is `late`. */
  async leave (listeners: SettlementListeners, late: Promise<void>): Promise<void> {
    if (this.#apps.size === 1) await Promise.race([this.flush(), late])
    this.#apps.delete(listeners)
    const heir = [...this.#apps].at(-1)
    if (heir === undefined) return this.#lose()
    for (const waiting of this.#waiting) if (waiting.listeners === listeners) waiting.listeners = heir
  }

  /** Once it is full, what charges nothing is given up, and its hold left to the sweeper: each request that is refused may leave one. */
  keep (settlement: Settlement, error: unknown, listeners: SettlementListeners): void {
    if (this.full && settlement.tokens === 0 && !settlement.cost) return listeners.onLost(settlement, error)
    this.#waiting.push({ settlement, listeners, refusals: 0 })
    this.#later()
  }

  /** A store of the host's may throw instead of returning a promise that rejects. */
  settle (settlement: Settlement): Settled | Promise<Settled> {
    try {
      return this.#balances.settle(settlement)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Sends what waits, until something fails. */
  async flush (): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => { this.#flushing = null })
    await this.#flushing
  }

  async #flush (): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = new Set(this.#waiting.slice(0, atOnce))
      const failed: Waiting[] = []
      await Promise.all([...batch].map(async (waiting) => {
        const error = await this.#try(waiting)
        if (error !== null) failed.push(waiting)
        if (isRefused(error)) waiting.refusals += 1
        if (waiting.refusals === maxRefusals) waiting.listeners.onLost(waiting.settlement, error)
      }))
      const again = failed.filter(({ refusals }) => refusals < maxRefusals)
      this.#waiting = [...this.#waiting.filter((waiting) => !batch.has(waiting)), ...again]
      if (failed.length > 0) return
    }
  }

  /** Null where the store has it; else why not. */
  async #try (waiting: Waiting): Promise<unknown> {
    try {
      const settled = await this.settle(waiting.settlement)
      waiting.listeners.onSettled?.(waiting.settlement, settled)
      return null
    } catch (error) {
      return error
    }
  }

  #lose (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const { settlement, listeners } of this.#waiting.splice(0)) listeners.onLost(settlement, null)
  }

  #later (): void {
    this.#timer ??= setTimeout(async () => {
      await this.flush()
      this.#timer = undefined
      if (!this.empty) this.#later()
    }, this.#options.retryMs).unref()
  }
}
