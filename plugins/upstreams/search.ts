import type { IncomingHttpHeaders } from 'node:http'
import type { ModelCall } from '../core/call/model-call.js'
import type { AffinityKey } from './affinity.js'
import { choose, noModel, type Ask } from './choice.js'
import type { Member } from './member.js'
import { noticeChangedSecrets } from './changed-secrets.js'
import type { Pool } from './pool.js'
import type { Surroundings } from './surroundings.js'
import { affinityKeyOf } from './affinity-key.js'

/** The way of one request through the members of a pool: where it has been, and who is next. */
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

  /** Who is asked now. Null where nobody may be. */
  begin (now: number): Member | null {
    const member = this.#due ?? this.next(now)
    this.#due = null
    if (member !== null) this.tried.push(member)
    return member
  }

  /** Has a member asked whoever else may be. `cause`: of a failure of the one before, null for none. */
  turnTo (member: Member, cause: string | null): void {
    this.#due = member
    if (cause !== null) this.#failedOver(this.#pool.name, cause)
  }

  /** Null where nobody may be asked. */
  next (now: number): Member | null {
    this.now = now
    noticeChangedSecrets(this.#pool.members)
    return choose(this.#pool, this)
  }

  /** The same, among those that were not asked yet. */
  another (now: number): Member | null {
    const next = this.next(now)
    return next === null || this.tried.includes(next) ? null : next
  }

  /** Every member was asked. */
  get isThrough (): boolean {
    return this.#pool.members.every((member) => this.tried.includes(member))
  }

  /** By the account of the member that was asked last. */
  refused (): void {
    const last = this.tried.at(-1)
    if (last !== undefined) this.refusedBy.push(last.health.account.name)
  }
}
