/**
 * What keys and groups may spend, as the limits plugin asks and each state engine answers. One interface, so that a host may bring an
 * engine of its own.
 */
import type { Limits } from '../types.js'

export type LimitName = 'requests' | 'tokens' | 'concurrency' | 'balance' | 'budget'

/** Whose limit: the group's, or within it the key's. */
export type Scope = 'group' | 'key'

/** A budget in one of its periods. */
export interface Bucket {
  /** Names the budget and the period; unique within its party. */
  readonly id: string
  /** The id in an older version: what was counted under it moves to the new id. */
  readonly formerId?: string
  /** What it is counted in: tokens, or whole billionths of a currency. */
  readonly unit: BudgetUnit
  readonly amount: number
  /** When its period ends, milliseconds since the epoch; null for never. */
  readonly endsAt: number | null
}

export type BudgetUnit = 'tokens' | 'cost'

/** What is set aside or charged: tokens, and billionths of the currency. */
export type Amounts = Readonly<Record<BudgetUnit, number>>

/** The group and the key whose limits apply to a request. A party without limits is not counted. */
export interface Parties {
  readonly group: string
  readonly groupLimits: Limits
  readonly groupBuckets?: readonly Bucket[] | undefined
  readonly key: string
  readonly keyLimits: Limits
  readonly keyBuckets?: readonly Bucket[] | undefined
}

export interface HoldAsk extends Parties {
  /** The request's unique id. Asking again for the same id adds to what it holds. */
  readonly id: string
  /** How many requests this counts as: 1 at first, 0 when a later step holds its tokens. */
  readonly requests: number
  /**
   * This id was never let in before, so it has no open hold. lmdb then looks for none, and would never settle one that exists.
   * Default: not known.
   */
  readonly isFirst?: boolean
  /** Tokens to set aside. Even 0 is refused if the balance is spent. */
  readonly tokens: number
  /** Tokens that are charged if nobody ever settles: the process died, and the request may have reached its upstream. */
  readonly floor: number
  /** The same of what it may cost, in billionths. Default 0. */
  readonly cost?: number
  readonly costFloor?: number
}

/** Tokens that may still be spent if every hold is settled in full; null without a balance. */
export interface Left {
  readonly group: number | null
  readonly key: number | null
  /** The same for the buckets of the key, then for those of the group; absent if there are none. */
  readonly buckets?: readonly number[]
}

export interface Admitted {
  readonly ok: true
  readonly left: Left
  /** What budgets have reached because their amount was changed; absent for nothing. */
  readonly reached?: readonly Reached[]
}

export interface LimitRefusal {
  readonly ok: false
  readonly limit: LimitName
  readonly scope: Scope
  /** Where the limit is a budget: its bucket. */
  readonly bucket?: string
  /** What the limit allows. */
  readonly allowed: number
  /** How much of it is free now. */
  readonly free: number
  /** When asking again makes sense; 0 if time alone does not help. */
  readonly retryAfterMs: number
  /** As of `Admitted`. */
  readonly reached?: readonly Reached[]
}

export type Decision = Admitted | LimitRefusal

/** Counters of one party, integers. `spent + held` is what is gone from its balance; without a balance, nothing is spent. */
export interface Account {
  readonly spent: number
  readonly held: number
  /** Requests that are running. */
  readonly active: number
  /** In the last minute. */
  readonly requests: number
  readonly tokens: number
}

/** How a hold ends. */
export interface Settlement {
  readonly id: string
  readonly group: string
  readonly key: string
  /** What the request really used. */
  readonly tokens: number
  /** What it cost, in billionths. Default 0. */
  readonly cost?: number
  /** Parties to charge, once, even if the store never made the hold because it was away. */
  readonly late: readonly Scope[]
  /** The buckets of these parties. */
  readonly lateBuckets?: readonly OwnedBucket[] | undefined
  /** Those of these parties that have a balance. Default: all of them. */
  readonly lateBalances?: readonly Scope[] | undefined
}

export interface OwnedBucket extends Bucket {
  readonly scope: Scope
}

/** A share of a budget that has just been reached. Reported once per bucket and share, by whichever process reached it. */
export interface Reached {
  readonly scope: Scope
  readonly bucket: string
  /** 50, 80 or 100. */
  readonly percent: number
}

/** Nothing, where an engine has no budgets. */
export type Settled = readonly Reached[] | void

/** Called for a settlement that the store has taken, with what it made budgets reach. */
export type SettledListener = (settlement: Settlement, settled: Settled) => void

/** Called for a settlement that is given up: the store takes others, but refused this one each time. */
export type LostListener = (settlement: Settlement, error: unknown) => void

/** What has gone of a bucket. */
export interface Spending {
  readonly spent: number
  readonly held: number
}

/**
 * One atomic decision over requests a minute, tokens a minute, concurrency and balance of a group and a key at once.
 * An engine that can answer at once does so without a promise; a promise that rejects means that the store cannot answer.
 */
export interface Balances {
  /** A hold that is not renewed for this long expires: the next `hold`, `read` or `readBucket` of its group charges its floor. */
  readonly holdTtlMs: number
  /** Admits a request and sets aside what it may cost, or refuses it and changes nothing. */
  hold: (ask: HoldAsk) => Decision | Promise<Decision>
  /** The request no longer runs, but its tokens are still being counted: frees its place under `concurrency`. Idempotent. */
  leave: (id: string, group: string) => void | Promise<void>
  /**
   * Replaces the hold by what was used, in the buckets in which it was held. Idempotent by id, also after the hold was swept. Returns what
   * it made budgets reach.
   */
  settle: (settlement: Settlement) => Settled | Promise<Settled>
  /**
   * Listens to settlements of what killed processes recorded, and to those that are given up, including earlier ones. A later listener
   * replaces an earlier one. Returns a function that stops it.
   */
  onRecovered?: (listener: SettledListener, onLost: LostListener) => () => void
  /** Keeps holds of running requests from expiring. */
  renew: (group: string, ids: readonly string[]) => void | Promise<void>
  /** A group's counters, or with `key` those of a key in it. */
  read: (group: string, key?: string) => Account | Promise<Account>
  /** A bucket of a group, or with `key` of a key in it. */
  readBucket: (bucket: string, group: string, key?: string) => Spending | Promise<Spending>
  /** Called last: nothing is asked any more. */
  close: () => Promise<void>
}
