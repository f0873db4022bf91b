import type { ModelCall } from '../core/call/model-call.js'
import type { Group } from '../core/types.js'
import { ownedBuckets } from '../core/balances/buckets.js'
import { scopesOf } from '../core/balances/parties.js'
import type { OwnedBucket, Parties, Scope } from '../core/balances/types.js'
import type { Lease } from './lease.js'

const none: readonly Scope[] = []

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
  /** The provider's work may continue after the request. */
  goesOn = false
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

  /** Parties to charge at settlement, because the store did not make the hold, or may make it late. */
  get late (): readonly Scope[] {
    return this.lease === null && !this.unsure ? none : scopesOf(this.parties)
  }

  /** Their budgets, in the periods in which the request began. */
  get lateBuckets (): readonly OwnedBucket[] {
    return ownedBuckets(this.parties, this.late)
  }
}

/**
 * The open tickets. A list without gaps instead of a map: V8 keeps the outgrown tables of a map reachable, and
 * with them every request that was in one, until the next full collection.
 */
export class OpenTickets implements Iterable<Ticket> {
  readonly #open: Ticket[] = []

  get isEmpty (): boolean {
    return this.#open.length === 0
  }

  of ({ ticket }: ModelCall): Ticket | undefined {
    return ticket instanceof Ticket ? ticket : undefined
  }

  add (ticket: Ticket, llm: ModelCall): void {
    llm.ticket = ticket
    ticket.place = this.#open.push(ticket) - 1
  }

  /** Unlinks ticket and request: nothing more may be held on it. */
  letGo (ticket: Ticket): void {
    if (ticket.llm !== null) ticket.llm.ticket = null
    ticket.llm = null
  }

  /** Idempotent. The request still refers to the ticket. */
  remove (ticket: Ticket): void {
    const last = this.#open.at(-1)
    if (ticket.place < 0 || last === undefined) return
    this.#open[ticket.place] = last
    last.place = ticket.place
    this.#open.pop()
    ticket.place = -1
  }

  [Symbol.iterator] (): Iterator<Ticket> {
    return this.#open.values()
  }
}
