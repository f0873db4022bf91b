import type { Balances } from '../core/balances/types.js'
import type { UnwrittenNotes } from './later.js'
import { Backlog, type BacklogOptions } from './backlog.js'
import type { Lease } from './lease.js'
import { LastKnown } from './last-known.js'

const defaults: BacklogOptions = { maxWaiting: 10_000, retryMs: 100 }

/**
 * This process's side of a store: settlements and notes that wait for it, the lease of an outage, and what was last known of it. Shared by
 * the apps of a process: otherwise each reload during an outage would spend another share.
 */
export class StoreSide {
  readonly balances: Balances
  readonly backlog: Backlog
  readonly lastKnown = new LastKnown()
  readonly unwritten: UnwrittenNotes = new Map()
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
