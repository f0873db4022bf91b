import type { ModelCall } from '../core/call/model-call.js'
import type { Group } from '../core/types.js'
import { ownedBuckets } from '../core/balances/buckets.js'
import { scopesOf } from '../core/balances/parties.js'
import type { OwnedBucket, Parties, Scope } from '../core/balances/types.js'
import type { Lease } from './lease.js'

const none: readonly Scope[] = []

/** One request's claim on the limits, from its first step to its settlement. */
export class Ticket {
  /** The request's. */
  readonly id: string
  /** Null once the request is over: a settlement may wait for a disk, and all that hangs on a request must not wait with it. */
  llm: ModelCall | null
  readonly parties: Parties
  readonly onStoreFailure: Group['onStoreFailure']
  /** What it holds. */
  tokens = 0
  /** Estimated tokens of the request itself. */
  input = 0
  /** The same in billionths of the currency, where a budget counts them: what it holds, and what of it is for the request itself. */
  cost = 0
  inputCost = 0
  /** The store was asked for a place. */
  entered = false
  /** The work may go on when the request is over. */
  goesOn = false
  /** Where it is counted while the store is away. */
  lease: Lease | null = null
  /** The store was asked and did not answer: it may hold something. */
  unsure = false
  /** Its place among the open ones. */
  place = -1

  constructor (llm: ModelCall, parties: Parties, onStoreFailure: Group['onStoreFailure']) {
    this.id = llm.id
    this.llm = llm
    this.parties = parties
    this.onStoreFailure = onStoreFailure
  }

  /** Parties to charge later, because the store did not make the hold, or may make it when its request is over. */
  get late (): readonly Scope[] {
    return this.lease === null && !this.unsure ? none : scopesOf(this.parties)
  }

  /** Their budgets, in the periods in which the request began. */
  get lateBuckets (): readonly OwnedBucket[] {
    return ownedBuckets(this.parties, this.late)
  }
}

/**
 * The tickets that are open. A list without gaps and not a map: a map's outgrown tables stay reachable from each other, and
 * with them every request that stood in one, until the next full collection.
 */
export class OpenTickets implements Iterable<Ticket> {
  readonly #open: Ticket[] = []

  of ({ ticket }: ModelCall): Ticket | undefined {
    return ticket instanceof Ticket ? ticket : undefined
  }

  add (ticket: Ticket, llm: ModelCall): void {
    llm.ticket = ticket
    ticket.place = this.#open.push(ticket) - 1
  }

  /** Nothing more may be held on it. */
  letGo (ticket: Ticket): void {
    if (ticket.llm !== null) ticket.llm.ticket = null
    ticket.llm = null
  }

  /** Once or more often. Its request still knows it. */
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
