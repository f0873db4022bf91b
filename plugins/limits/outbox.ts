import type { Settlement } from '../core/balances/types.js'
import type { Backlog, SettlementListeners } from './backlog.js'

/** Sends an app's settlements to the store, again if it is away. Each is idempotent, so that sending it again does no harm. */
export class Outbox {
  readonly #backlog: Backlog
  readonly #listeners: SettlementListeners
  readonly #sending = new Set<Promise<void>>()

  constructor (backlog: Backlog, listeners: SettlementListeners) {
    this.#backlog = backlog
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
    this.#sending.add(sent)
    return sent
  }

  async close (): Promise<void> {
    await Promise.all(this.#sending)
    await this.#backlog.leave(this.#listeners)
  }
}
