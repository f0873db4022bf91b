import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Upstream } from '../core/upstream/upstream.js'
import { Breaker, failureRules, refusalRules } from './breaker.js'
import { Load } from './load.js'

const maxModels = 1_000

/** The health of one upstream, as this process knows it: shared by all pools that it is in, and kept over a reload. */
export class Health {
  readonly breaker = new Breaker(failureRules)
  /** Of its credential. */
  readonly credential = new Breaker(refusalRules)
  /** Models that its credential may not use. */
  readonly models = new LRUCache<string, Breaker>({ max: maxModels })
  readonly account: Account
  active = 0
  readonly #loads = new Map<string, Load>()
  /** Digest of the secret that was refused last, for all models or one. Null for none. */
  #refused: string | null = null

  constructor (account: Account) {
    this.account = account
  }

  get isRefused (): boolean {
    return this.#refused !== null
  }

  refuse (secret: string | null): void {
    this.#refused = digestOf(secret ?? '')
  }

  /** The current secret. If it is not the refused one, the breakers of the credential are reset. */
  meet (secret: string): void {
    if (this.#refused === digestOf(secret)) return
    this.#refused = null
    this.credential.succeeded()
    this.models.clear()
  }

  /** Its breakers let a request for this model pass. The account is asked separately. */
  allows (model: string, now: number): boolean {
    return this.isWell(now) && this.refusalOf(model)?.allows(now) !== false
  }

  /** Its breakers let requests pass, whatever the model. */
  isWell (now: number): boolean {
    return this.breaker.allows(now) && this.credential.allows(now)
  }

  /** When it may be asked again; 0 for now. */
  returnsAt (model: string): number {
    return Math.max(this.breaker.until, this.credential.until, this.refusalOf(model)?.until ?? 0, this.account.until(model))
  }

  /** Its load as a member of one pool. Kept over a reload, because requests go on running. */
  loadIn (pool: string): Load {
    const known = this.#loads.get(pool) ?? new Load()
    this.#loads.set(pool, known)
    return known
  }

  /** The breaker of one model, if there is one. Mostly there is none at all, and each request asks several times. */
  refusalOf (model: string): Breaker | undefined {
    return this.models.size === 0 ? undefined : this.models.get(model)
  }

  /** The same, made if there is none. */
  modelBreaker (model: string): Breaker {
    const known = this.refusalOf(model) ?? new Breaker(refusalRules)
    this.models.set(model, known)
    return known
  }
}

/** Only a digest is kept here, so that no secret outlives its use. */
function digestOf (secret: string): string {
  return hash('sha256', secret, 'base64')
}

/** A provider account. Its upstreams share its rate limits, which are per model. */
export class Account {
  readonly name: string
  readonly #cooled = new LRUCache<string, number>({ max: maxModels })

  constructor (name: string) {
    this.name = name
  }

  /** Until when it gets no request for the model; 0 if it does. */
  until (model: string): number {
    return this.#cooled.size === 0 ? 0 : this.#cooled.get(model) ?? 0
  }

  allows (model: string, now: number): boolean {
    return this.until(model) <= now
  }

  /** Never shortens the pause: a later refusal may name a shorter one. */
  cool (model: string, until: number): void {
    if (until > this.until(model)) this.#cooled.set(model, until)
  }

  /** Models that wait, each with the end of its pause. */
  cooled (now: number): Array<readonly [model: string, until: number]> {
    return [...this.#cooled.entries()].filter(([, until]) => until > now)
  }
}

/** The health of all upstreams of a process, by name, address and account. */
export class HealthRegistry {
  readonly #accounts = new Map<string, Account>()
  readonly #upstreams = new Map<string, Health>()

  of ({ name, origin, basePath, account }: Upstream): Health {
    const key = JSON.stringify([name, origin, basePath, account])
    const known = this.#upstreams.get(key) ?? new Health(this.#account(account))
    this.#upstreams.set(key, known)
    return known
  }

  #account (name: string): Account {
    const known = this.#accounts.get(name) ?? new Account(name)
    this.#accounts.set(name, known)
    return known
  }
}

const registries = new WeakMap<object, HealthRegistry>()

/** The same registry for the same owner, so that an app which replaces another one knows what that one knew. */
export function healthRegistry (owner: object): HealthRegistry {
  const known = registries.get(owner) ?? new HealthRegistry()
  registries.set(owner, known)
  return known
}
