import { isRefused, maxRefusals } from '../core/balances/store-down.js'
import type { Balances, LostListener, Settled, SettledListener, Settlement } from '../core/balances/types.js'

export interface OutboxOptions {
  readonly balances: Balances
  /** Settlements that may wait for the store; one more is lost here, and left to the sweeper. */
  readonly maxWaiting: number
  readonly retryMs: number
  /** Left to the sweeper, or to the next start: it waits here no more. */
  readonly onLost: LostListener
  /** The settlement is in the store, which says what it made budgets reach. */
  readonly onSettled?: SettledListener
}

const atOnce = 100

interface Waiting {
  readonly settlement: Settlement
  /** How often the store was there and did not take it. */
  refusals: number
}

/** Settlements reach the store, once it is there: each is idempotent, so that sending it again does no harm. */
export class Outbox {
  readonly #options: OutboxOptions
  #waiting: Waiting[] = []
  readonly #sending = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | null = null

  constructor (options: OutboxOptions) {
    this.#options = options
  }

  get empty (): boolean {
    return this.#waiting.length === 0
  }

  get full (): boolean {
    return this.#waiting.length >= this.#options.maxWaiting
  }

  send (settlement: Settlement): void {
    const settled = this.#settle(settlement)
    if (!isLater(settled)) return this.#options.onSettled?.(settlement, settled)
    const sent = settled.then((later) => {
      this.#sending.delete(sent)
      this.#options.onSettled?.(settlement, later)
    }, (error: unknown) => {
      this.#sending.delete(sent)
      this.#keep(settlement, error)
    })
    this.#sending.add(sent)
  }

  /** Sends what waits, until something fails. It waits until the store has it. */
  async flush (): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = new Set(this.#waiting.slice(0, atOnce))
      const failed: Waiting[] = []
      await Promise.all([...batch].map(async (waiting) => {
        const error = await this.#try(waiting)
        if (error !== null) failed.push(waiting)
        if (isRefused(error)) waiting.refusals += 1
        if (waiting.refusals === maxRefusals) this.#options.onLost(waiting.settlement, error)
      }))
      const again = failed.filter(({ refusals }) => refusals < maxRefusals)
      this.#waiting = [...this.#waiting.filter((waiting) => !batch.has(waiting)), ...again]
      if (failed.length > 0) return
    }
  }

  async close (): Promise<void> {
    await Promise.all(this.#sending)
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.flush()
    for (const { settlement } of this.#waiting) this.#options.onLost(settlement, null)
  }

  /** Null where the store has it; else why not. */
  async #try ({ settlement }: Waiting): Promise<unknown> {
    try {
      const settled = await this.#settle(settlement)
      this.#options.onSettled?.(settlement, settled)
      return null
    } catch (error) {
      return error
    }
  }

  /** A store of the host's may throw in place of a promise that fails. */
  #settle (settlement: Settlement): Settled | Promise<Settled> {
    try {
      return this.#options.balances.settle(settlement)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #keep (settlement: Settlement, error: unknown): void {
    if (this.full) {
      this.#options.onLost(settlement, error)
      return
    }
    this.#waiting.push({ settlement, refusals: 0 })
    this.#later()
  }

  #later (): void {
    this.#timer ??= setTimeout(async () => {
      await this.flush()
      this.#timer = null
      if (!this.empty) this.#later()
    }, this.#options.retryMs).unref()
  }
}

function isLater (settled: Settled | Promise<Settled>): settled is Promise<Settled> {
  return settled instanceof Promise
}
