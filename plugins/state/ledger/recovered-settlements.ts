import type { LostListener, Settled, SettledListener, Settlement } from '../../core/balances/types.js'
import type { RecoveryListeners } from './recover.js'

/**
 * Results of recovery: budgets that reached a threshold, and records that were put aside. Kept, because recovery may be over before anybody
 * listens.
 */
export class RecoveredSettlements {
  readonly #waiting: Array<(listeners: RecoveryListeners) => void> = []
  #listeners: RecoveryListeners | null = null

  readonly onSettled = (settlement: Settlement, settled: Settled): void => {
    if (settled !== undefined && settled.length > 0) this.#tell(({ onSettled }) => onSettled(settlement, settled))
  }

  readonly onLost: LostListener = (settlement, error) => this.#tell(({ onLost }) => onLost(settlement, error))

  /** See `Balances.onRecovered`. */
  readonly listen = (onSettled: SettledListener, onLost: LostListener): (() => void) => {
    const listeners = { onSettled, onLost }
    this.#listeners = listeners
    for (const tell of this.#waiting.splice(0)) tell(listeners)
    return () => { if (this.#listeners === listeners) this.#listeners = null }
  }

  #tell (tell: (listeners: RecoveryListeners) => void): void {
    if (this.#listeners === null) this.#waiting.push(tell)
    else tell(this.#listeners)
  }
}
