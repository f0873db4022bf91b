import type { Settlement } from '../core/balances/types.js'
import type { Backlog, SettlementListeners } from './backlog.js'

/** As long as the standalone gateway waits for its requests by default. */
const defaultCloseMs = 25_000

/** Sends an app's settlements to the store, again if it is away. Each is idempotent, so that sending it again does no harm. */
export class Outbox {
  readonly #backlog: Backlog
  readonly #listeners: SettlementListeners
  readonly #closeMs: number
  readonly #sending = new Map<Promise<void>, Settlement>()

  /** `closeMs`: how long its end waits for a store, which may be a host's and never answer. */
  constructor (backlog: Backlog, listeners: SettlementListeners, closeMs = defaultCloseMs) {
    this.#backlog = backlog
    this.#closeMs = closeMs
    this.#listeners = listeners
    backlog.join(listeners)
  }

  /** Resolves when the store has it, or it waits in the backlog. */
  send (settlement: Settlement): void | Promise<void> {
    const settled = this.#backlog.settle(settlement)
    if (!(settled instanceof Promise)) return this.#listeners.onSettled?.(settlement, settled)
    const sent = settled.then((later) => {
      this.#sending.delete(sent)
      this.#listeners.onSettled?.(settlement, later)
    }, (error: unknown) => {
      this.#sending.delete(sent)
      this.#backlog.keep(settlement, error, this.#listeners)
    })
    this.#sending.set(sent, settlement)
    return sent
  }

  async close (): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, this.#closeMs) })
    await Promise.race([Promise.all(this.#sending.keys()), late])
    for (const settlement of this.#sending.values()) this.#listeners.onLost(settlement, null)
    await this.#backlog.leave(this.#listeners, late)
    clearTimeout(timer)
  }
}
