import type { Judgement } from './judgement.js'
import type { Member } from './member.js'

/** How long an account is left alone after a rate limit, if the provider does not say. */
const coolMs = 5_000
/** A longer pause is not believed: after this time the next request tries. */
const longestCoolMs = 3_600_000

export type Verdict = Pick<Judgement, 'blames' | 'waitMs'>

/** One request's time at one member: counts as load until its end, and reports the result to the member's health. */
export class Visit {
  readonly member: Member
  readonly beganAt: number
  /** The secret that the member was sent; null for none, or none yet. */
  secret: string | null = null
  readonly #model: string
  /** Breakers for which this is the trial request. */
  readonly #triesUpstream: boolean
  readonly #triesCredential: boolean
  readonly #triesModel: boolean
  #isReported = false

  constructor (member: Member, model: string, now: number) {
    const { health, load } = member
    this.member = member
    this.beganAt = now
    this.#model = model
    load.begin(now)
    health.active += 1
    this.#triesUpstream = health.breaker.enter(now)
    this.#triesCredential = health.credential.enter(now)
    this.#triesModel = health.refusalOf(model)?.enter(now) === true
  }

  /** True if the upstream was out until now. */
  get isTry (): boolean {
    return this.#triesUpstream
  }

  /** Asks for a secret to replace the one that was sent; null if it never changes. */
  renew (): Promise<string> | null {
    const { secret, member: { upstream: { secret: { renew } } } } = this
    return secret === null || renew === null ? null : renew(secret)
  }

  /** Reports the result. `isBegun`: the reply has only begun, and may still break off. */
  report ({ blames, waitMs }: Verdict, now: number, isBegun = false): void {
    const { breaker, credential, account, models } = this.member.health
    const first = !this.#isReported
    this.#isReported = true
    if (blames === 'upstream') breaker.failed(now, first && this.#triesUpstream, Math.min(waitMs ?? 0, longestCoolMs))
    else if (isBegun) breaker.answered()
    else breaker.succeeded()
    if (blames === 'credential') credential.failed(now, this.#triesCredential)
    else if (blames !== 'upstream') credential.succeeded()
    if (blames === 'credential_model') this.member.health.modelBreaker(this.#model).failed(now, this.#triesModel)
    else if (blames === null && models.size > 0) models.delete(this.#model)
    if (blames === null) this.member.load.answered()
    if (blames === 'account_model') account.cool(this.#model, now + Math.min(waitMs ?? coolMs, longestCoolMs))
    if (blames === 'credential' || blames === 'credential_model') this.member.health.refuse(this.secret)
    if (first) this.#endTrials(blames)
  }

  /** The reply was not broken off by the upstream. */
  complete (): void {
    if (this.#isReported) this.member.health.breaker.completed()
  }

  /** The visit is over. Breakers that learnt nothing from it wait for the next trial. */
  end (): void {
    const { health, load } = this.member
    load.end()
    health.active -= 1
    if (!this.#isReported) this.#endTrials('nothing')
  }

  #endTrials (blames: Judgement['blames'] | 'nothing'): void {
    const { breaker, credential } = this.member.health
    if (blames === 'nothing') breaker.undecided(this.#triesUpstream)
    if (blames === 'nothing' || blames === 'upstream') credential.undecided(this.#triesCredential)
    if (blames !== null && blames !== 'credential_model') this.member.health.refusalOf(this.#model)?.undecided(this.#triesModel)
  }
}
