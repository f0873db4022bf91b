import type { Balances, Settled, SettledListener, Settlement } from '../core/balances/types.js'

export interface OutboxOptions {
  readonly balances: Balances
  /** Settlements that may wait for the store; one more is lost here, and left to the sweeper. */
  readonly maxWaiting: number
  readonly retryMs: number
  readonly onLost: (settlement: Settlement) => void
  /** The settlement is in the store, which says what it made budgets reach. */
  readonly onSettled?: SettledListener
}

const atOnce = 100

/** Settlements reach the store, once it is there: each is idempotent, so that sending it again does no harm. */
export class Outbox {
  readonly #options: OutboxOptions
  #waiting: Settlement[] = []
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
    }, () => {
      this.#sending.delete(sent)
      this.#keep(settlement)
    })
    this.#sending.add(sent)
  }

  /** Sends what waits, until something fails. It waits until the store has it. */
  async flush (): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = new Set(this.#waiting.slice(0, atOnce))
      const failed: Settlement[] = []
      await Promise.all([...batch].map(async (settlement) => {
        try {
          const settled = await this.#settle(settlement)
          this.#options.onSettled?.(settlement, settled)
        } catch {
          failed.push(settlement)
        }
      }))
      this.#waiting = [...this.#waiting.filter((settlement) => !batch.has(settlement)), ...failed]
      if (failed.length > 0) return
    }
  }

  async close (): Promise<void> {
    await Promise.all(this.#sending)
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.flush()
    for (const settlement of this.#waiting) this.#options.onLost(settlement)
  }

  /** A store of the host's may throw in place of a promise that fails. */
  #settle (settlement: Settlement): Settled | Promise<Settled> {
    try {
      return this.#options.balances.settle(settlement)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #keep (settlement: Settlement): void {
    if (this.full) {
      this.#options.onLost(settlement)
      return
    }
    this.#waiting.push(settlement)
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
