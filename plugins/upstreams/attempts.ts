import type { IncomingHttpHeaders } from 'node:http'
import { gatewayError, GatewayError } from '../core/errors/gateway-error.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Attempts, Called, Failure, KeptReply, StreamHead } from '../core/upstream/upstream.js'
import { timerMs } from '../core/with-timeout.js'
import { Allowance } from './allowance.js'
import { BestFailure } from './best-failure.js'
import { callOf, uncompressed } from './call.js'
import { judge, needsBody, type Judgement } from './judgement.js'
import type { Member } from './member.js'
import { mayBeNamed } from './bindings.js'
import { BoundMember } from './bound-member.js'
import type { Pool } from './pool.js'
import { Search } from './search.js'
import { EventHead } from './stream-head.js'
import type { Surroundings } from './surroundings.js'
import type { Visit } from './visit.js'
import { Visits } from './visits.js'

/** About how long to wait before the same upstream is asked again. */
const againMs = 100

/** The attempts of one request at the members of a pool. */
export class PoolAttempts implements Attempts {
  readonly #pool: Pool
  readonly #around: Surroundings
  readonly #llm: ModelCall
  readonly #allowance: Allowance
  readonly #bound: BoundMember
  readonly #holdsHeads: boolean
  readonly #search: Search
  readonly #visits: Visits
  readonly #mayRenew: boolean
  /** The last member whose refused secret was renewed: once for each. */
  #renewedFor: Member | null = null
  readonly #best = new BestFailure()
  #isOver = false

  constructor (pool: Pool, llm: ModelCall, headers: IncomingHttpHeaders, once: boolean, around: Surroundings) {
    this.#pool = pool
    this.#mayRenew = !once
    // What goes on after its connection must not be begun twice: its caller needs the id.
    this.#holdsHeads = llm.stream && !llm.body.goesOn && pool.causes.has('first_event')
    this.#llm = llm
    this.#around = around
    this.#search = new Search(pool, llm, headers, around)
    this.#bound = new BoundMember(pool.members, llm, around.bindings)
    llm.routing.boundMs = pool.members.length > 1 && mayBeNamed(llm) ? pool.affinityTtlMs : 0
    this.#allowance = new Allowance(once ? 1 : pool.attempts, pool.deadlineMs, around)
    this.#visits = new Visits(pool.members, llm, around)
  }

  next (): Called | Promise<Called> {
    const bound = this.#bound.find()
    return bound instanceof Promise ? this.#found(bound) : this.#beginAt(bound)
  }

  async #found (bound: Promise<Member | null>): Promise<Called> {
    const member = await bound
    return this.#isOver ? this.#best.note(gatewayError('internal_error')) : await this.#beginAt(member)
  }

  #beginAt (bound: Member | null): Called | Promise<Called> {
    if (this.#bound.isKnown) this.#allowance.attemptsLeft = 1
    if (bound !== null && (this.#bound.isKnown || this.#search.mayBegin(bound, this.#around.now()))) this.#search.turnTo(bound, null)
    return this.#begin()
  }

  #begin (): Called | Promise<Called> {
    const now = this.#around.now()
    const member = this.#search.begin(now)
    if (member === null) return this.#best.note(gatewayError('upstream_busy'))
    const visit = this.#visits.begin(member, this.#search.model, now)
    const secret = member.upstream.secret.current()
    return secret instanceof Promise ? this.#wait(visit, secret) : this.#call(visit, secret, now)
  }

  async #wait (visit: Visit, pending: Promise<string>): Promise<Called> {
    const secret = await this.#allowance.inTime(pending)
    if (secret !== null) return await this.#call(visit, secret, this.#around.now())
    this.#visits.end('credential', { blames: 'credential', waitMs: null })
    return await this.#elsewhere('credential', gatewayError('upstream_credential_unavailable'))
  }

  #call (visit: Visit, secret: string | null, now: number): Called | Promise<Called> {
    visit.secret = secret
    const longestMs = timerMs(Math.min(this.#pool.attemptTimeoutMs, this.#allowance.leftMs(now)))
    const called = callOf(visit.member.upstream, this.#llm, secret, longestMs)
    if (called instanceof GatewayError) {
      // Its address does not fit this request, which says nothing about its health.
      this.#visits.end(null, null)
      return this.#elsewhere(null, called)
    }
    this.#allowance.attemptsLeft -= 1
    return this.#holdsHeads ? uncompressed(called) : called
  }

  /** Nothing was sent: asks another member, which counts as no attempt. `cause`: why the one before failed, null if it did not. */
  #elsewhere (cause: string | null, error: GatewayError): Called | Promise<Called> {
    const next = this.#isOver || this.#bound.isKnown || this.#allowance.isLate ? null : this.#search.another(this.#around.now())
    // The answer is still 404 if the members that cannot be asked are those whose address does not fit.
    if (next === null) return cause === null && this.#best.isMissing ? error : this.#best.note(error)
    this.#search.turnTo(next, cause)
    return this.#begin()
  }

  look (status: number): 'pass' | 'whole' | 'head' {
    this.#visits.status = status
    if (needsBody(status) || this.#isMissing) return 'whole'
    return this.#holdsHeads && status === 200 && this.#allowance.attemptsLeft > 0 ? 'head' : 'pass'
  }

  /** The member does not have the id that is looked for. */
  get #isMissing (): boolean {
    return this.#visits.status === 404 && this.#bound.isLookedFor
  }

  openHead (): StreamHead {
    return new EventHead(this.#llm.endpoint.usage)
  }

  passed (headers: KeptReply['headers']): void {
    this.#visits.passed(headers)
  }

  failed (failure: Failure): number | null | Promise<number | null> {
    const visit = this.#visits.current
    const judgement = judge(failure, visit?.member.upstream.forwards === false, Date.now(), this.#llm)
    this.#best.keep(failure, judgement.result, this.#isMissing)
    const isRefused = this.#visits.status === 401 && judgement.cause === 'credential'
    const renewing = isRefused && this.#mayRenew && visit?.member !== this.#renewedFor ? visit?.renew() : null
    if (visit && renewing) return this.#renew(visit, renewing, judgement)
    this.#visits.end(judgement.result, judgement)
    return this.#goOn(judgement)
  }

  /** The provider refused the secret: the same member is asked once more with a new one. That does not count as a retry. */
  async #renew ({ member, secret }: Visit, renewing: Promise<string>, judgement: Judgement): Promise<number | null> {
    this.#renewedFor = member
    const renewed = await this.#allowance.inTime(renewing)
    const isOther = renewed !== null && renewed !== secret
    this.#visits.end('credential', isOther ? null : judgement)
    if (this.#isOver) return null
    if (!isOther) return this.#goOn(judgement)
    this.#allowance.attemptsLeft += 1
    this.#search.turnTo(member, 'credential')
    return 0
  }

  /** Milliseconds until another attempt, null for none. */
  #goOn ({ cause, blames }: Judgement): number | null | Promise<number | null> {
    if (this.#isMissing) return this.#lookOn()
    const isCause = cause === 'credential' || (cause !== null && this.#pool.causes.has(cause))
    if (!isCause || this.#allowance.attemptsLeft <= 0 || this.#allowance.isLate) return null
    // What is wrong with this request alone is wrong for the whole account, and retries elsewhere are no load on a failing upstream.
    const isOwn = blames === null
    if (cause === '429' || isOwn) this.#search.refused()
    const next = this.#search.next(this.#around.now())
    if (next === null) return null
    return isOwn || this.#allowance.mayRetry() ? this.#retry(next, cause) : this.#retryLater(cause)
  }

  async #retryLater (cause: string): Promise<number | null> {
    const isPlaced = await this.#allowance.place()
    const next = isPlaced ? this.#search.next(this.#around.now()) : null
    return next === null ? null : this.#retry(next, cause)
  }

  #retry (next: Member, cause: string): number | null {
    const waitMs = this.#search.tried.includes(next) ? againMs * (0.5 + this.#around.random()) : 0
    if (waitMs >= this.#allowance.leftMs(this.#around.now())) return null
    this.#search.turnTo(next, cause)
    return waitMs
  }

  /** Looks for the member that made what the id names. Asking costs nothing. */
  #lookOn (): number | null {
    const next = this.#search.another(this.#around.now())
    if (next !== null) {
      this.#search.turnTo(next, 'unknown_id')
      return 0
    }
    // A member that is out may have it.
    if (!this.#search.isThrough) this.#best.note(gatewayError('upstream_unreachable'))
    return null
  }

  last (): KeptReply | Error {
    return this.#best.answer(this.#llm)
  }

  over (end: 'complete' | 'broken' | 'left'): void {
    this.#isOver = true
    this.#visits.over(end)
    this.#allowance.over()
  }
}
