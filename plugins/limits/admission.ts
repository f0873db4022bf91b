import type { ModelCall } from '../core/call/model-call.js'
import { DenseList } from '../core/dense-list.js'
import type { Group, Key } from '../core/types.js'
import type { Amounts, Decision, HoldAsk, Parties, Reached, Settlement } from '../core/balances/types.js'
import { currentBuckets } from './budgets.js'
import type { Answer, Outage } from './outage.js'
import type { Outbox } from './outbox.js'
import { Remaining } from './remaining.js'
import type { StoreSide } from './store-side.js'
import { owesNothing, Ticket, type Owed } from './ticket.js'

const renewAtOnce = 500
const nothing: Amounts = { tokens: 0, cost: 0 }

/** Called for budgets that have reached a share because their amount was changed. */
type ReachedListener = (parties: Parties, reached: readonly Reached[]) => void

/** The life of a request's ticket: begun, held at the store, settled. */
export class Admission {
  readonly remaining: Remaining
  readonly #side: StoreSide
  readonly #outbox: Outbox
  readonly #outage: Outage
  readonly #tickets = new DenseList<Ticket>()
  readonly #onReached: ReachedListener

  constructor (side: StoreSide, outbox: Outbox, outage: Outage, onReached: ReachedListener) {
    this.remaining = new Remaining(side.lastKnown)
    this.#side = side
    this.#outbox = outbox
    this.#outage = outage
    this.#onReached = onReached
  }

  /** No request holds anything. */
  get isIdle (): boolean {
    return this.#tickets.size === 0
  }

  /** Makes the ticket; the store is not asked yet. `currency`: of budgets in money. */
  begin (llm: ModelCall, key: Key, group: Group, currency: string): Ticket {
    const ticket = new Ticket(llm, partiesOf(key, group, currency), group.onStoreFailure)
    llm.ticket = ticket
    this.#tickets.add(ticket)
    return ticket
  }

  /** Takes a place under rates and concurrency, if there is anything left to spend. */
  enter (ticket: Ticket): Answer | Promise<Answer> {
    return this.#enter(ticket, nothing)
  }

  /** Sets aside what the request may cost (`all`, of which `input` is the request itself), and takes a place if it has none yet. */
  hold (ticket: Ticket, all: Amounts, input: Amounts): Answer | Promise<Answer> {
    ticket.input = input.tokens
    ticket.inputCost = input.cost
    ticket.tokens = all.tokens
    ticket.cost = all.cost
    return ticket.entered ? this.#ask(ticket, 0, all) : this.#enter(ticket, all)
  }

  /**
   * The request is over and its record is being written: frees its place at once. Its tokens stay held; the ticket is renewed until it is
   * settled.
   */
  leave (ticket: Ticket): void {
    const { id, parties, lease } = ticket
    if (parties.groupLimits.concurrency === undefined && parties.keyLimits.concurrency === undefined) return
    lease?.balances.leave(id, parties.group)
    // A settlement follows, and frees the place too.
    Promise.resolve(this.#side.balances.leave(id, parties.group)).catch(() => {})
  }

  /** The request is over, and what it used is known. Resolves as `Outbox.send` does. */
  settle (ticket: Ticket, used: Amounts): void | Promise<void> {
    const { id, parties, lease, tokens, cost } = ticket
    this.#close(ticket)
    if (!ticket.entered) return
    lease?.balances.settle(settlementOf(ticket, used, owesNothing))
    if (lease === null) this.#side.lastKnown.giveBack(parties, { tokens: tokens - used.tokens, cost: cost - used.cost })
    const sent = this.#outbox.send(settlementOf(ticket, used, ticket.owed))
    if (lease !== null) Promise.resolve(sent).then(() => lease.requests.delete(id))
    return sent
  }

  /** Renews the holds of all open tickets. A group for which that fails does not keep others from it, and is renewed the next time. */
  async renew (): Promise<void> {
    const byGroup = new Map<string, string[]>()
    for (const { id, parties: { group } } of this.#tickets) {
      const ids = byGroup.get(group)
      if (ids === undefined) byGroup.set(group, [id])
      else ids.push(id)
    }
    for (const [group, ids] of byGroup) {
      try {
        while (ids.length > 0) await this.#side.balances.renew(group, ids.splice(0, renewAtOnce))
      } catch {}
    }
  }

  #enter (ticket: Ticket, amounts: Amounts): Answer | Promise<Answer> {
    ticket.entered = true
    return this.#ask(ticket, 1, amounts)
  }

  /** Closes the ticket of a request that got no place; gives back the place of one that is over. */
  #entered (ticket: Ticket, { requests }: HoldAsk, answer: Answer): Answer {
    if (answer !== 'store down' && answer.ok) {
      // It has been settled meanwhile, which may have overtaken the hold: a Redis that lost its scripts is sent a hold again.
      if (ticket.place < 0) this.#outbox.send(settlementOf(ticket, nothing, owesNothing))
      return answer
    }
    // What was not taken is not given back.
    ticket.tokens = 0
    ticket.cost = 0
    if (requests === 0) return answer
    this.#close(ticket)
    ticket.lease?.requests.delete(ticket.id)
    if (ticket.unsure) this.#outbox.send(settlementOf(ticket, nothing, ticket.owed))
    return answer
  }

  #close (ticket: Ticket): void {
    this.#tickets.delete(ticket)
    ticket.letGo()
  }

  #ask (ticket: Ticket, requests: number, { tokens, cost }: Amounts): Answer | Promise<Answer> {
    const { id, parties: { group, groupLimits, groupBuckets, key, keyLimits, keyBuckets }, input, inputCost } = ticket
    // Written out: V8 clones an object and adds to it in 10 us, and makes another shape of it each time.
    const ask: HoldAsk = {
      group,
      groupLimits,
      groupBuckets,
      key,
      keyLimits,
      keyBuckets,
      id,
      requests,
      isFirst: requests === 1,
      tokens,
      floor: input,
      cost,
      costFloor: inputCost,
    }
    if (ticket.lease !== null) return this.#outage.askLease(ticket.lease, ask)
    const answer = this.#held(ask)
    if (!(answer instanceof Promise)) return this.#entered(ticket, ask, this.#answered(ticket, answer))
    return answer.then(
      (decision) => this.#entered(ticket, ask, this.#answered(ticket, decision)),
      async (error) => this.#entered(ticket, ask, await this.#outage.answer(ticket, ask, error))
    )
  }

  /** A store of the host's may throw instead of returning a promise that rejects. */
  #held (ask: HoldAsk): Decision | Promise<Decision> {
    try {
      return this.#side.balances.hold(ask)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #answered ({ parties }: Ticket, decision: Decision): Decision {
    if (decision.ok) this.remaining.note(parties, decision.left)
    else this.remaining.noteRefused(parties, decision)
    if (decision.reached !== undefined) this.#onReached(parties, decision.reached)
    this.#outage.over()
    return decision
  }
}

/** With the buckets of this moment: a request stays in the periods in which it began. */
function partiesOf (key: Key, group: Group, currency: string): Parties {
  const now = Date.now()
  return {
    group: group.id,
    groupLimits: group.limits,
    groupBuckets: currentBuckets(group.limits, currency, now),
    key: key.id,
    keyLimits: key.limits,
    keyBuckets: currentBuckets(key.limits, currency, now),
  }
}

function settlementOf ({ id, parties: { group, key } }: Ticket, { tokens, cost }: Amounts, owed: Owed): Settlement {
  const { late } = owed
  return late.length === 0 ? { id, group, key, tokens, cost, late } : { id, group, key, tokens, cost, ...owed }
}
