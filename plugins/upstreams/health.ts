import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Upstream } from '../core/upstream/upstream.js'
import { Breaker, failureRules, refusalRules } from './breaker.js'
import { Load } from './load.js'

const maxModels = 1_000

/** What is known of how an upstream does, in this process: the same for all pools that it is in, and across a reload. */
export class Health {
  readonly breaker = new Breaker(failureRules)
  /** Of its credential. */
  readonly credential = new Breaker(refusalRules)
  /** Models that its credential may not use. */
  readonly models = new LRUCache<string, Breaker>({ max: maxModels })
  readonly account: Account
  active = 0
  readonly #loads = new Map<string, Load>()
  /** Digest of the secret that was refused last, for all or for some model; of nothing where there was none. */
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

  /** With another secret than the one that was refused it begins anew. */
  meet (secret: string): void {
    if (this.#refused === digestOf(secret)) return
    this.#refused = null
    this.credential.succeeded()
    this.models.clear()
  }

  /** Its breakers let a request for this model pass; what its account has to say comes besides. */
  allows (model: string, now: number): boolean {
    return this.isWell(now) && this.refusalOf(model)?.allows(now) !== false
  }

  /** Asked for whatever model comes, as far as its own breakers go. */
  isWell (now: number): boolean {
    return this.breaker.allows(now) && this.credential.allows(now)
  }

  /** From when on it may be asked, as far as is known; 0 for any time. */
  returnsAt (model: string): number {
    return Math.max(this.breaker.until, this.credential.until, this.refusalOf(model)?.until ?? 0, this.account.until(model))
  }

  /** How busy it is as a member of one pool: what was begun before a reload still runs after it. */
  loadIn (pool: string): Load {
    const known = this.#loads.get(pool) ?? new Load()
    this.#loads.set(pool, known)
    return known
  }

  /** The breaker of one model, where there is one: mostly there is none of any, and each request asks for it some times. */
  refusalOf (model: string): Breaker | undefined {
    return this.models.size === 0 ? undefined : this.models.get(model)
  }

  /** The same, made where there is none. */
  modelBreaker (model: string): Breaker {
    const known = this.refusalOf(model) ?? new Breaker(refusalRules)
    this.models.set(model, known)
    return known
  }
}

/** No secret is kept longer than by who uses it. */
function digestOf (secret: string): string {
  return hash('sha256', secret, 'base64')
}

/** An account of a provider: its upstreams share its rate limits, which are by model. */
export class Account {
  readonly name: string
  readonly #cooled = new LRUCache<string, number>({ max: maxModels })

  constructor (name: string) {
    this.name = name
  }

  /** Until when it takes no request for the model; 0 where it does. */
  until (model: string): number {
    return this.#cooled.size === 0 ? 0 : this.#cooled.get(model) ?? 0
  }

  allows (model: string, now: number): boolean {
    return this.until(model) <= now
  }

  /** Never shortens: a later refusal may tell less than an earlier one. */
  cool (model: string, until: number): void {
    if (until > this.until(model)) this.#cooled.set(model, until)
  }

  /** Models that wait, with the end of it. */
  cooled (now: number): Array<readonly [model: string, until: number]> {
    return [...this.#cooled.entries()].filter(([, until]) => until > now)
  }
}

/** All that one process knows of its upstreams, by what they are. */
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

/** The same registry for the same owner: an app that takes over from another one knows what that one knew. */
export function healthRegistry (owner: object): HealthRegistry {
  const known = registries.get(owner) ?? new HealthRegistry()
  registries.set(owner, known)
  return known
}
