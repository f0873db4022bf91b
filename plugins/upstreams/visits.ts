import type { ModelCall } from '../core/call/model-call.js'
import type { KeptReply } from '../core/upstream/upstream.js'
import { passedOn, well, type AttemptResult, type Judgement } from './judgement.js'
import type { Member } from './member.js'
import type { Surroundings } from './surroundings.js'
import { Visit, type Verdict } from './visit.js'

/** The visits of one request, one after the other, and what is reported of each. */
export class Visits {
  /** Status of the current reply, 0 before there is one. */
  status = 0
  readonly #members: readonly Member[]
  readonly #llm: ModelCall
  readonly #around: Pick<Surroundings, 'attempted' | 'now'>
  #current: Visit | null = null
  /** What the reply that was passed on said about its member. */
  #passedOn: Judgement = well

  constructor (members: readonly Member[], llm: ModelCall, around: Pick<Surroundings, 'attempted' | 'now'>) {
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
    const visit = this.#current
    this.#passedOn = passedOn(this.status, headers)
    // The time matters only for members that were out or fail; otherwise no clock is read.
    if (visit?.isTry === false && this.#passedOn.blames === null) visit.report(this.#passedOn, visit.beganAt, true)
    else if (visit !== null) this.#report(visit, this.#passedOn, this.#around.now(), true)
  }

  /** `result` null: it does not count as an attempt. `verdict` null: nothing is reported. */
  end (result: AttemptResult | null, verdict: Verdict | null): void {
    const visit = this.#current
    if (visit === null) return
    const now = this.#around.now()
    if (verdict !== null && verdict.blames !== 'nobody_asked') this.#report(visit, verdict, now)
    visit.end()
    this.#current = null
    if (result === null) return
    const upstream = visit.member.upstream.name
    this.#around.attempted(upstream, result)
    const attempts = this.#llm.routing.attempts ??= []
    attempts.push({ upstream, result, status: this.status, durationMs: Math.round(now - visit.beganAt) })
  }

  /** The request is over, and with it the current visit, if there is one. */
  over (end: 'complete' | 'broken' | 'left'): void {
    if (this.#current === null) return
    const { result, blames } = this.#passedOn
    if (end === 'broken' && blames === null) {
      this.end('reset', { blames: 'upstream', waitMs: null })
      return
    }
    if (blames !== 'upstream') this.#current.complete()
    // A failure is known by its head, even if the caller leaves.
    this.end(end === 'left' && result === 'ok' ? 'left' : result, null)
  }

  /** If all members were out and this one is back, the others are tried at once, so that it does not get the whole load. */
  #report (visit: Visit, verdict: Verdict, now: number, isBegun = false): void {
    const isFirstBack = visit.isTry && verdict.blames !== 'upstream' && this.#members.every(({ health }) => health.breaker.isOpen)
    visit.report(verdict, now, isBegun)
    if (isFirstBack) for (const { health } of this.#members) health.breaker.hurry(now)
  }
}
