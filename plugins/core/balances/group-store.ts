/** Where an engine keeps accounts and holds. */
import type { BucketRecord, HeldBucket } from './buckets.js'
import type { Scope } from './types.js'
import type { Window } from './window.js'

export interface AccountRecord {
  spent: number
  held: number
  active: number
  readonly window: Window
}

export interface HoldRecord {
  readonly id: string
  readonly group: string
  readonly key: string
  /** The parties that are counted, as decided when the hold was made. */
  readonly scopes: readonly Scope[]
  /** Those of them that have a balance. For others, `spent` is not counted. */
  readonly balances: readonly Scope[]
  /** Their buckets: it is settled in the periods in which it was made. */
  readonly buckets: readonly HeldBucket[]
  tokens: number
  cost: number
  floor: number
  costFloor: number
  /** 1 while it takes a place under `concurrency`. */
  active: 0 | 1
  /** The second of the window in which its tokens are counted. */
  second: number
  deadline: number
  /** `open` expires and is charged its floor; `closed` only remembers what was charged, for late settlements. */
  state: 'open' | 'closed'
  /** It was settled. An ask that arrives only after that holds nothing any more. */
  readonly settled?: true
}

/**
 * The accounts and holds of one group. Every call sees the effect of earlier ones. The objects that a store returns may
 * be its own: they are saved after each change, and a hold whose state or deadline changes is saved as a new object.
 */
export interface GroupStore {
  /** The account of the group, or of a key in it. Undefined for a party that was never counted. */
  account: (key: string | null) => AccountRecord | undefined
  /** `isLess`: `spent` may be lower than what was saved before. */
  saveAccount: (key: string | null, account: AccountRecord, isLess?: boolean) => void
  /** A bucket of the group, or of a key in it. */
  bucket: (key: string | null, id: string) => BucketRecord | undefined
  saveBucket: (key: string | null, id: string, bucket: BucketRecord, isLess?: boolean) => void
  /** Forgets those of one party whose period ended before. */
  dropBuckets: (key: string | null, before: number) => void
  /**
   * Called when an account of a key is made: checks a few others and forgets idle ones, with their buckets. So keys
   * that never come back make room for new ones.
   */
  dropIdle: (nowMs: number) => void
  /** `isFirst`: the caller knows that there is no open hold with this id. */
  hold: (id: string, isFirst?: boolean) => HoldRecord | undefined
  /** `before`: what the store has; the same object if it was changed in place. */
  saveHold: (hold: HoldRecord, before: HoldRecord | undefined) => void
  dropHold: (hold: HoldRecord) => void
  /** Holds whose deadline is not after `now`, at most `max`. */
  due: (now: number, max: number) => readonly HoldRecord[]
}

export interface Engine {
  readonly storeOf: (group: string) => GroupStore
  readonly now: () => number
  readonly holdTtlMs: number
}
