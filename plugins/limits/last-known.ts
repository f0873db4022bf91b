import { LRUCache } from 'lru-cache'
import { accountName } from '../core/balances/parties.js'
import type { Bucket } from '../core/balances/types.js'

/** Keys with a balance of their own that are remembered. */
const maxKeys = 10_000

export interface KnownBalance {
  granted: number
  left: number
}

export interface KnownBudget {
  bucket: Bucket
  left: number
}

/** What was left of balances and budgets when the store last answered, whichever app asked. */
export class LastKnown {
  readonly groups = new Map<string, KnownBalance>()
  /** By group: each of its budgets, in the newest period. */
  readonly budgets = new Map<string, KnownBudget[]>()
  /** By account. Made on first use, because an LRU cache allocates for its maximum at once. */
  #keys: LRUCache<string, { left: number }> | null = null

  noteKey (group: string, key: string, left: number): void {
    this.#keys ??= new LRUCache({ max: maxKeys })
    const name = accountName(group, key)
    const known = this.#keys.get(name)
    if (known === undefined) this.#keys.set(name, { left })
    else known.left = left
  }

  ofKey (group: string, key: string): { left: number } | undefined {
    return this.#keys?.get(accountName(group, key))
  }
}
