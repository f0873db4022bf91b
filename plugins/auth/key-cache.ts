/**
 * Digest -> key, cached (docs/security.md). Known and unknown keys have separate bounded caches, so that a flood of made-up
 * keys cannot evict good ones. There is one load per digest at a time. If a key is invalidated while it is being loaded, the answer
 * is discarded and the store is asked again.
 */
import { performance } from 'node:perf_hooks'
import { LRUCache } from 'lru-cache'
import type { LookupResult } from '../core/recorder.js'
import type { Key, KeyChange } from '../core/types.js'
import { concerns, KnownKeys } from './known-keys.js'
import { LoadBudget } from './load-budget.js'

export interface KeyCacheOptions {
  /**
   * Known keys held at most.
   * @defaultValue 10,000
   */
  max: number
  /**
   * How long a known key is trusted, in milliseconds from its load, never extended by use.
   * @defaultValue 30,000
   */
  ttlMs: number
  /**
   * Unknown digests held at most.
   * @defaultValue 1,000
   */
  negativeMax: number
  /**
   * How long an unknown digest is taken for unknown, in milliseconds.
   * @defaultValue 5,000
   */
  negativeTtlMs: number
  /**
   * How long beyond its `ttlMs` a known key is still accepted while the store fails, in milliseconds. 0 for not at all.
   * @defaultValue 300,000
   */
  staleMs: number
  /**
   * Store look-ups at the same time; one more fails at once.
   * @defaultValue 256
   */
  maxLoads: number
  /**
   * Store look-ups per second for keys that are not cached; more fail at once. Cached keys are always renewed.
   * @defaultValue 5,000
   */
  maxLoadsPerSecond: number
}

export type Load = (digest: string) => Promise<Key | null>

type OnLookup = (result: LookupResult, seconds?: number) => void

interface Pending {
  readonly promise: Promise<Key | null>
  /** Changes since the store was asked. */
  readonly changes: KeyChange[]
}

export class KeyCache {
  readonly #known: KnownKeys
  readonly #unknown: LRUCache<string, number>
  /**
   * Digests whose key was known until it changed: loaded without the bounds for unknown keys, but not trusted. Made on first use, because
   * an LRU cache allocates for its maximum at once.
   */
  #changed: LRUCache<string, true> | null = null
  /** Keys that were loaded before this are used only while the store fails. */
  #believedFrom = -Infinity
  readonly #pending = new Map<string, Pending>()
  readonly #options: KeyCacheOptions
  readonly #budget: LoadBudget
  readonly #onLookup: OnLookup
  readonly #now: () => number

  constructor (options: KeyCacheOptions, onLookup: OnLookup, now: () => number = () => performance.now()) {
    this.#options = options
    this.#onLookup = onLookup
    this.#now = now
    this.#budget = new LoadBudget(options.maxLoadsPerSecond, now())
    this.#known = new KnownKeys(options.max)
    this.#unknown = new LRUCache({ max: options.negativeMax })
  }

  get sizes (): { positive: number, negative: number } {
    return { positive: this.#known.size, negative: this.#unknown.size }
  }

  /** What the cache knows: a key, null for one that does not exist, undefined for not known. */
  peek (digest: string): Key | null | undefined {
    const now = this.#now()
    const entry = this.#known.get(digest)
    if (entry !== undefined && now - entry.loadedAt < this.#options.ttlMs && entry.loadedAt >= this.#believedFrom) {
      this.#onLookup('hit')
      return entry.key
    }
    const missedAt = this.#unknown.get(digest)
    if (missedAt === undefined || now - missedAt >= this.#options.negativeTtlMs) return undefined
    this.#onLookup('negative_hit')
    return null
  }

  /** The store is being asked about it. */
  isAsked (digest: string): boolean {
    return this.#pending.has(digest)
  }

  /** Asks the store, or joins a load that is under way. Rejects if the store fails and nothing usable is cached. */
  async load (digest: string, load: Load): Promise<Key | null> {
    const pending = this.#pending.get(digest)
    if (pending !== undefined) {
      this.#onLookup('coalesced')
      return pending.promise
    }
    if (this.#pending.size >= this.#options.maxLoads) {
      return this.#standIn(digest, new Error('too many key look-ups at the same time'))
    }
    // A flood of made-up keys does not reach the store, and takes no look-up from keys that are in use.
    const inUse = this.#known.has(digest) || this.#changed?.has(digest) === true
    if (!inUse && !this.#budget.take(this.#now())) {
      return this.#standIn(digest, new Error('too many look-ups of unknown keys'))
    }
    const changes: KeyChange[] = []
    const promise = this.#ask(digest, load, changes).finally(() => this.#pending.delete(digest))
    this.#pending.set(digest, { promise, changes })
    return promise
  }

  async #ask (digest: string, load: Load, changes: KeyChange[]): Promise<Key | null> {
    const startedAt = this.#now()
    // Starting in a later turn lets `load` note this look-up as pending before the store can answer.
    await null
    try {
      const key = await this.#fresh(digest, load, changes)
      this.#onLookup('miss', (this.#now() - startedAt) / 1_000)
      return key
    } catch (error) {
      return this.#standIn(digest, error, (this.#now() - startedAt) / 1_000)
    }
  }

  async #fresh (digest: string, load: Load, changes: KeyChange[]): Promise<Key | null> {
    for (;;) {
      changes.length = 0
      const loadedAt = this.#now()
      const key = await load(digest)
      if (changes.some((change) => mayConcern(change, digest, key))) continue
      this.#keep(digest, key, loadedAt)
      return key
    }
  }

  /** The cached key while the store fails; throws `error` if there is none, or it is too old. */
  #standIn (digest: string, error: unknown, seconds?: number): Key {
    const { ttlMs, staleMs } = this.#options
    const entry = this.#known.get(digest)
    const usable = entry !== undefined && this.#now() - entry.loadedAt < ttlMs + staleMs
    this.#onLookup(usable ? 'stale' : 'error', seconds)
    if (usable) return entry.key
    throw error
  }

  #keep (digest: string, key: Key | null, loadedAt: number): void {
    this.#changed?.delete(digest)
    if (key === null) {
      this.#known.delete(digest)
      this.#unknown.set(digest, loadedAt)
    } else {
      this.#unknown.delete(digest)
      this.#known.set(digest, { key, loadedAt })
    }
  }

  /** Forgets the keys that a change concerns, and repeats loads that are under way. Unknown keys may have become known. */
  invalidate (change: KeyChange): void {
    for (const { changes } of this.#pending.values()) changes.push(change)
    this.#unknown.clear()
    if (change.missed === true) {
      this.#believedFrom = this.#now()
      return
    }
    for (const digest of this.#known.forget(change)) {
      this.#changed ??= new LRUCache({ max: this.#options.max })
      this.#changed.set(digest, true)
    }
  }
}

/** A change that names no digest may have made any unknown key known. */
function mayConcern (change: KeyChange, digest: string, key: Key | null): boolean {
  return key === null ? change.digest === undefined || change.digest === digest : concerns(change, digest, key)
}
