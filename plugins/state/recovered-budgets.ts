import type { Settled, SettledListener, Settlement } from '../core/balances/types.js'

/** What settlements of a recovery made budgets reach: an engine tells that once, and recovery may be over before anybody listens. */
export class RecoveredBudgets {
  readonly #waiting: Array<readonly [Settlement, Settled]> = []
  #listener: SettledListener | null = null

  readonly add: SettledListener = (settlement, settled) => {
    if (this.#listener !== null) this.#listener(settlement, settled)
    else if (settled !== undefined && settled.length > 0) this.#waiting.push([settlement, settled])
  }

  /** See `Balances.onRecovered`. */
  readonly listen = (listener: SettledListener): (() => void) => {
    this.#listener = listener
    for (const [settlement, settled] of this.#waiting.splice(0)) listener(settlement, settled)
    return () => { if (this.#listener === listener) this.#listener = null }
  }
}
