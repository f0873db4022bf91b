import type { ModelCall } from '../core/call/model-call.js'
import type { KeptReply } from '../core/upstream/upstream.js'
import { passedOn, well, type AttemptResult, type Judgement } from './judgement.js'
import type { Member } from './member.js'
import type { Surroundings } from './surroundings.js'
import { endVisit, tellBegun, Visit, type Told } from './visit.js'

/** The visits of one request, one after the other, and what is told of each. */
export class Visits {
  /** Of the reply that is looked at, 0 where there was none yet. */
  status = 0
  readonly #members: readonly Member[]
  readonly #llm: ModelCall
  readonly #around: Surroundings
  #current: Visit | null = null
  /** What the reply that was passed on told of its member. */
  #passedOn: Judgement = well

  constructor (members: readonly Member[], llm: ModelCall, around: Surroundings) {
    this.#members = members
    this.#llm = llm
    this.#around = around
  }

  /** Null before the first, and between two. */
  get current (): Visit | null {
    return this.#current
  }

  begin (member: Member, model: string, now: number): Visit {
    this.status = 0
    this.#passedOn = well
    this.#current = new Visit(member, model, now)
    return this.#current
  }

  /** Its reply is passed on. */
  passed (headers: KeptReply['headers']): void {
    this.#passedOn = passedOn(this.status, headers)
    if (this.#current !== null) tellBegun(this.#members, this.#current, this.#passedOn, this.#around.now)
  }

  /** A null for `result`: it was no attempt; for `told`: nothing is told of anybody. */
  end (result: AttemptResult | null, status: number, told: Told | null): void {
    const visit = this.#current
    if (visit === null) return
    const now = this.#around.now()
    endVisit(this.#members, visit, told, now)
    this.#current = null
    if (result === null) return
    const upstream = visit.member.upstream.name
    this.#around.attempted(upstream, result)
    const attempts = this.#llm.routing.attempts ??= []
    attempts.push({ upstream, result, status, durationMs: Math.round(now - visit.beganAt) })
  }

  /** The request is over, and with it the visit under way; a caller that left has ended it already. */
  over (end: 'complete' | 'broken' | 'left'): void {
    if (this.#current === null) return
    const { result, blames } = this.#passedOn
    if (end === 'broken' && blames === null) {
      this.end('reset', this.status, { blames: 'upstream', waitMs: null })
      return
    }
    if (blames !== 'upstream') this.#current.complete()
    // A failure is told by its head, whoever leaves it: its caller gets words of ours where the rest does not come.
    this.end(end === 'left' && result === 'ok' ? 'left' : result, this.status, null)
  }
}
