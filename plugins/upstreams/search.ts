import type { IncomingHttpHeaders } from 'node:http'
import type { ModelCall } from '../core/call/model-call.js'
import type { AffinityKey } from './affinity.js'
import { choose, isServing, noModel, type Ask } from './choice.js'
import type { Member } from './member.js'
import type { Pool } from './pool.js'
import type { Surroundings } from './surroundings.js'
import { affinityKeyOf } from './affinity-key.js'

/** The path of one request through the members of a pool: which were tried, and which is next. */
export class Search implements Ask {
  readonly model: string
  readonly affinityKey: AffinityKey | null
  readonly tried: Member[] = []
  readonly refusedBy: string[] = []
  readonly random: () => number
  now = 0
  readonly #pool: Pool
  readonly #failedOver: Surroundings['failedOver']
  #due: Member | null = null

  constructor (pool: Pool, llm: ModelCall, headers: IncomingHttpHeaders, { random, failedOver }: Surroundings) {
    this.model = llm.model ?? noModel
    this.affinityKey = affinityKeyOf(pool, llm, headers)
    this.random = random
    this.#pool = pool
    this.#failedOver = failedOver
  }

  /** The member to ask now, null for none. */
  begin (now: number): Member | null {
    const member = this.#due ?? this.next(now)
    if (member !== null) this.tried.push(member)
    return member
  }

  /** Sets the member to ask next. `cause`: why the one before failed, null if it did not. */
  turnTo (member: Member, cause: string | null): void {
    this.#due = member
    if (cause !== null) this.#failedOver(this.#pool.name, cause)
  }

  /** The best member for the next attempt, null for none. */
  next (now: number): Member | null {
    this.now = now
    noticeChangedSecrets(this.#pool.members)
    return choose(this.#pool, this)
  }

  /** True if the member may get the request now. */
  mayBegin (member: Member, now: number): boolean {
    this.now = now
    return isServing(member, this)
  }

  /** The best one among the members that were not tried yet. */
  another (now: number): Member | null {
    const next = this.next(now)
    return next === null || this.tried.includes(next) ? null : next
  }

  /** Every member was tried. */
  get isThrough (): boolean {
    return this.#pool.members.every((member) => this.tried.includes(member))
  }

  /** Marks the account of the last member as one that refused this request. */
  refused (): void {
    const last = this.tried.at(-1)
    if (last !== undefined) this.refusedBy.push(last.health.account.name)
  }
}

/**
 * Lets members whose secret was refused, or could not be had, take requests again once they have another secret: from a new configuration,
 * their file or their function. Otherwise only a request asks for a secret, and a member that is out gets none.
 */
function noticeChangedSecrets (members: readonly Member[]): void {
  for (const { health, upstream: { secret } } of members) {
    if (!health.isRefused) continue
    const current = secret.current()
    if (typeof current === 'string') health.meet(current)
    else current?.then((later) => health.meet(later), () => {})
  }
}
