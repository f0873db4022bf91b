import { LRUCache } from 'lru-cache'
import { accountName } from '../core/balances/parties.js'
import type { Bucket } from '../core/balances/types.js'

/** More keys with a balance of their own than this are not remembered at once. */
const maxKeys = 10_000

export interface KnownBalance {
  granted: number
  left: number
}

export interface KnownBudget {
  bucket: Bucket
  left: number
}

/** What was left of everything when the store last answered, whichever app asked. */
export class LastKnown {
  readonly groups = new Map<string, KnownBalance>()
  /** By group: of each of its budgets the newest period. */
  readonly budgets = new Map<string, KnownBudget[]>()
  /** By account. Made with the first: it has room for all of them from the start. */
  #keys: LRUCache<string, number> | null = null

  noteKey (group: string, key: string, left: number): void {
    this.#keys ??= new LRUCache({ max: maxKeys })
    this.#keys.set(accountName(group, key), left)
  }

  ofKey (group: string, key: string): number | undefined {
    return this.#keys?.get(accountName(group, key))
  }
}
