import type { ModelCall } from '../core/call/model-call.js'
import type { Group } from '../core/types.js'
import { ownedBuckets } from '../core/balances/buckets.js'
import { balancesOf, scopesOf } from '../core/balances/parties.js'
import type { Parties } from '../core/balances/types.js'
import type { LedgerRecord } from '../core/money/ledger.js'
import type { Lease } from './lease.js'

/** Whom to charge at settlement, because the store did not make the hold, or may make it late. */
export type Owed = Pick<LedgerRecord, 'late' | 'lateBuckets' | 'lateBalances'>

export const owesNothing: Owed = { late: [] }

/** All that are counted, with their budgets in the periods in which the request began. */
export function owedBy (parties: Parties): Owed {
  const late = scopesOf(parties)
  return { late, lateBuckets: ownedBuckets(parties, late), lateBalances: balancesOf(parties) }
}

/** One request's claim on the limits, from its first step to its settlement. */
export class Ticket {
  /** Id of the request. */
  readonly id: string
  /** Null once the request is over: a settlement may wait for a disk, and must not keep the request in memory meanwhile. */
  llm: ModelCall | null
  readonly parties: Parties
  readonly onStoreFailure: Group['onStoreFailure']
  /** Tokens that it holds. */
  tokens = 0
  /** Estimated tokens of the request itself. */
  input = 0
  /** The same two in billionths of the currency, for budgets in money. */
  cost = 0
  inputCost = 0
  /** The store was asked for a place. */
  entered = false
  /** The lease in which it is counted, if the store was away. */
  lease: Lease | null = null
  /** The store was asked and did not answer: it may have made a hold. */
  unsure = false
  /** Its index among the open tickets, -1 for none. */
  place = -1

  constructor (llm: ModelCall, parties: Parties, onStoreFailure: Group['onStoreFailure']) {
    this.id = llm.id
    this.llm = llm
    this.parties = parties
    this.onStoreFailure = onStoreFailure
  }

  get owed (): Owed {
    return this.lease === null && !this.unsure ? owesNothing : owedBy(this.parties)
  }

  /** Unlinks it and its request: nothing more may be held on it. */
  letGo (): void {
    if (this.llm !== null) this.llm.ticket = null
    this.llm = null
  }
}

export function ticketOf ({ ticket }: ModelCall): Ticket | undefined {
  return ticket instanceof Ticket ? ticket : undefined
}
