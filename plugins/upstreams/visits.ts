import type { ModelCall } from '../core/call/model-call.js'
import type { KeptReply } from '../core/upstream/upstream.js'
import { passedOn, well, type AttemptResult, type Judgement } from './judgement.js'
import type { Member } from './member.js'
import type { Surroundings } from './surroundings.js'
import { endVisit, reportBegun, Visit, type Verdict } from './visit.js'

/** The visits of one request, one after the other, and what is reported of each. */
export class Visits {
  /** Status of the current reply, 0 before there is one. */
  status = 0
  readonly #members: readonly Member[]
  readonly #llm: ModelCall
  readonly #around: Surroundings
  #current: Visit | null = null
  /** What the reply that was passed on said about its member. */
  #passedOn: Judgement = well

  constructor (members: readonly Member[], llm: ModelCall, around: Surroundings) {
    this.#members = members
    this.#llm = llm
    this.#around = around
  }

  /** Null before the first visit and between two. */
  get current (): Visit | null {
    return this.#current
  }

  begin (member: Member, model: string, now: number): Visit {
    this.status = 0
    this.#current = new Visit(member, model, now)
    return this.#current
  }

  /** Its reply is passed on. */
  passed (headers: KeptReply['headers']): void {
    this.#passedOn = passedOn(this.status, headers)
    if (this.#current !== null) reportBegun(this.#members, this.#current, this.#passedOn, this.#around.now)
  }

  /** `result` null: it does not count as an attempt. `verdict` null: nothing is reported. */
  end (result: AttemptResult | null, status: number, verdict: Verdict | null): void {
    const visit = this.#current
    if (visit === null) return
    const now = this.#around.now()
    endVisit(this.#members, visit, verdict, now)
    this.#current = null
    if (result === null) return
    const upstream = visit.member.upstream.name
    this.#around.attempted(upstream, result)
    const attempts = this.#llm.routing.attempts ??= []
    attempts.push({ upstream, result, status, durationMs: Math.round(now - visit.beganAt) })
  }

  /** The request is over, and with it the current visit, if there is one. */
  over (end: 'complete' | 'broken' | 'left'): void {
    if (this.#current === null) return
    const { result, blames } = this.#passedOn
    if (end === 'broken' && blames === null) {
      this.end('reset', this.status, { blames: 'upstream', waitMs: null })
      return
    }
    if (blames !== 'upstream') this.#current.complete()
    // A failure is known by its head, even if the caller leaves.
    this.end(end === 'left' && result === 'ok' ? 'left' : result, this.status, null)
  }
}
