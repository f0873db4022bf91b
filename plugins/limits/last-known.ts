import { LRUCache } from 'lru-cache'
import { amountIn } from '../core/balances/buckets.js'
import { accountName } from '../core/balances/parties.js'
import type { Amounts, Bucket, Left, Parties } from '../core/balances/types.js'

/** Keys with a balance of their own that are remembered. */
const maxKeys = 10_000

const none: readonly never[] = []

export interface KnownBalance {
  granted: number
  left: number
}

export interface KnownBudget {
  bucket: Bucket
  left: number
}

/** What was left of balances and budgets when the store last answered, whichever app asked: a lease is a share of it. */
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

  /** Of balances; null where nothing is known. */
  left ({ group, key }: Parties): Left {
    return { group: this.groups.get(group)?.left ?? null, key: this.#ofKey(group, key)?.left ?? null }
  }

  /** Of a budget of the group; the whole amount where nothing is known. */
  leftIn (group: string, bucket: Bucket): number {
    const known = findBudget(this.budgets, group, bucket)
    return known?.bucket.id === bucket.id ? known.left : bucket.amount
  }

  /** A hold ended, and what it did not use is free again. */
  giveBack ({ group, groupBuckets = none, key }: Parties, amounts: Amounts): void {
    for (const bucket of groupBuckets) {
      const known = findBudget(this.budgets, group, bucket)
      if (known?.bucket.id === bucket.id) known.left += amountIn(amounts, bucket.unit)
    }
    const ofGroup = this.groups.get(group)
    if (ofGroup !== undefined) ofGroup.left += amounts.tokens
    const ofKey = this.#ofKey(group, key)
    if (ofKey !== undefined) ofKey.left += amounts.tokens
  }

  #ofKey (group: string, key: string): { left: number } | undefined {
    return this.#keys?.get(accountName(group, key))
  }
}

/** Nearly always by the same bucket object, without a look at its id. */
export function findBudget (groups: ReadonlyMap<string, readonly KnownBudget[]>, group: string, bucket: Bucket): KnownBudget | undefined {
  const budgets = groups.get(group) ?? none
  for (const known of budgets) if (known.bucket === bucket) return known
  return inAnotherPeriod(budgets, bucket)
}

/** Not inside of `findBudget`, which would then allocate for this closure each time. */
function inAnotherPeriod (budgets: readonly KnownBudget[], bucket: Bucket): KnownBudget | undefined {
  return budgets.find((known) => budgetOf(known.bucket.id) === budgetOf(bucket.id))
}

/** A bucket's id without its period's beginning. */
function budgetOf (id: string): string {
  return id.slice(0, id.lastIndexOf(' '))
}
