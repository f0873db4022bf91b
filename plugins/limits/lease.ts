import type { Bucket } from '../core/balances/types.js'
import type { Limits } from '../core/types.js'
import { memoryBalances } from '../core/balances/memory.js'
import { accountName } from '../core/balances/parties.js'
import type { Balances, Decision, HoldAsk, Left } from '../core/balances/types.js'

const rates = ['requestsPerMinute', 'tokensPerMinute', 'concurrency'] as const

/**
 * What one process may spend while the store is away: a share of every limit, and a share of what a balance had left when the
 * store last answered, or of what a reload has lowered it to since. The sum over all processes bounds the overrun of one outage.
 */
export class Lease {
  /** Holds here never expire: they end with their requests, or with the process. */
  readonly balances: Balances = memoryBalances({ holdTtlMs: Infinity })
  /** Ids of requests that run, or whose settlement is on its way. */
  readonly requests = new Set<string>()
  readonly #percent: number
  readonly #slices = new Map<string, number>()

  constructor (percent: number) {
    this.#percent = percent
  }

  /** `left`: what was left when the store last answered, null where it never did; `inBucket`: the same of a budget of the group. */
  hold (ask: HoldAsk, left: Left, inBucket: (bucket: Bucket) => number): Decision | Promise<Decision> {
    const { group, key, groupBuckets, keyBuckets } = ask
    return this.balances.hold({
      ...ask,
      ...groupBuckets && { groupBuckets: groupBuckets.map((bucket) => this.#slice(accountName(group), bucket, inBucket(bucket))) },
      ...keyBuckets && { keyBuckets: keyBuckets.map((bucket) => this.#slice(accountName(group, key), bucket, bucket.amount)) },
      groupLimits: this.#share(accountName(ask.group), ask.groupLimits, left.group),
      keyLimits: this.#share(accountName(ask.group, ask.key), ask.keyLimits, left.key),
    })
  }

  #slice (account: string, bucket: Bucket, left: number): Bucket {
    const name = `${account} ${bucket.id}`
    const slice = this.#slices.get(name) ?? this.#part(Math.max(0, left))
    this.#slices.set(name, slice)
    return { ...bucket, amount: Math.min(slice, this.#part(bucket.amount)) }
  }

  #share (account: string, limits: Limits, left: number | null): Limits {
    const { balance, budgets } = limits
    // The buckets have shares of their own (`#slice`). Budgets are kept here so that the party is counted at all.
    const share: Limits = budgets === undefined ? {} : { budgets }
    if (balance !== undefined) {
      const slice = this.#slices.get(account) ?? this.#part(Math.max(0, left ?? balance))
      this.#slices.set(account, slice)
      share.balance = Math.min(slice, this.#part(balance))
    }
    for (const name of rates) {
      const rate = limits[name]
      // One below one would let nothing through.
      if (rate !== undefined) share[name] = Math.max(1, this.#part(rate))
    }
    return share
  }

  #part (whole: number): number {
    return Math.floor(whole * this.#percent / 100)
  }
}
