import type { Balances } from '../core/balances/types.js'
import { Backlog, type BacklogOptions } from './backlog.js'
import type { Lease } from './lease.js'
import { LastKnown } from './last-known.js'

const defaults: BacklogOptions = { maxWaiting: 10_000, retryMs: 250 }

/**
 * What this process owes a store, may spend while that is away, and knew of it last. Not an app's own: each reload would spend another
 * share of an outage.
 */
export class StoreSide {
  readonly balances: Balances
  readonly backlog: Backlog
  readonly lastKnown = new LastKnown()
  lease: Lease | null = null

  constructor (balances: Balances, options = defaults) {
    this.balances = balances
    this.backlog = new Backlog(balances, options)
  }
}

const sides = new WeakMap<Balances, StoreSide>()

/** The same for every app that is given the same balances. */
export function storeSideOf (balances: Balances): StoreSide {
  const side = sides.get(balances) ?? new StoreSide(balances)
  sides.set(balances, side)
  return side
}
