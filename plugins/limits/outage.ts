import { StoreDownError } from '../core/balances/store-down.js'
import type { Decision, HoldAsk } from '../core/balances/types.js'
import { Lease } from './lease.js'
import type { StoreSide } from './store-side.js'
import type { Ticket } from './ticket.js'

export type Answer = Decision | 'store down'

/** An outage is logged this often, not for each request. */
const tellEveryMs = 10_000

/** What happens to a request while the store is away: it is refused, or its group spends a share of its limits in this process. */
export class Outage {
  readonly #leasePercent: number
  readonly #side: StoreSide
  readonly #onTrouble: (error: unknown) => void
  #toldAt = -Infinity

  constructor (leasePercent: number, side: StoreSide, onTrouble: (error: unknown) => void) {
    this.#leasePercent = leasePercent
    this.#side = side
    this.#onTrouble = onTrouble
  }

  /** The store was asked and failed with `error`. */
  answer (ticket: Ticket, ask: HoldAsk, error: unknown): Answer | Promise<Answer> {
    this.#tell(error)
    ticket.unsure ||= !(error instanceof StoreDownError) || error.asked
    if (ticket.llm === null || ticket.onStoreFailure === 'closed' || this.#side.backlog.full) return 'store down'
    const lease = this.#side.lease ??= new Lease(this.#leasePercent)
    ticket.lease = lease
    lease.requests.add(ticket.id)
    return this.askLease(lease, ask)
  }

  /** A request that began with a lease stays with it, even if the store is back. */
  async askLease (lease: Lease, ask: HoldAsk): Promise<Answer> {
    const { lastKnown } = this.#side
    const decision = await lease.hold(ask, lastKnown.left(ask), (bucket) => lastKnown.leftIn(ask.group, bucket))
    // A share that is used up is no balance that is spent.
    return !decision.ok && ['balance', 'budget'].includes(decision.limit) ? 'store down' : decision
  }

  /** The store answers (in a cluster, perhaps another node of it). Once it has all that the lease spent, the lease ends. */
  over (): void {
    const { backlog, lease } = this.#side
    if (backlog.empty && lease?.requests.size === 0) this.#side.lease = null
  }

  #tell (error: unknown): void {
    const now = performance.now()
    if (now - this.#toldAt < tellEveryMs) return
    this.#toldAt = now
    this.#onTrouble(error)
  }
}
