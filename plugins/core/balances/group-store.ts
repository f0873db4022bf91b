/** Where an engine keeps accounts and holds. */
import type { BucketRecord, HeldBucket } from './buckets.js'
import type { AccountRecord } from './parties.js'
import type { Scope } from './types.js'

export interface HoldRecord {
  readonly id: string
  readonly group: string
  readonly key: string
  /** Parties that are counted, decided when the hold was made. */
  readonly scopes: readonly Scope[]
  /** Those of them that have a balance, which it is taken from: of others nobody asks what they ever spent. */
  readonly balances: readonly Scope[]
  /** Their buckets: it is settled in the periods that it was made in. */
  readonly buckets: readonly HeldBucket[]
  tokens: number
  cost: number
  floor: number
  costFloor: number
  /** 1 while it takes a place under `concurrency`. */
  active: 0 | 1
  /** Where its tokens stand in the window. */
  second: number
  deadline: number
  /** `open` expires and is charged its floor; `closed` only remembers what was charged, for whoever settles late. */
  state: 'open' | 'closed'
  /** Its settlement said whom to charge: an ask that arrives only now was overtaken by it, and holds nothing any more. */
  readonly settled?: true
}

/**
 * Where accounts and holds of one group are kept. Every call sees the effect of the ones before. What a store hands out may
 * be what it keeps: it is saved after each change, and a hold whose state or deadline changes is saved as a new object.
 */
export interface GroupStore {
  /** The account of the group, or of a key in it. Undefined for a party that was never counted. */
  account: (key: string | null) => AccountRecord | undefined
  /** `isLess`: what is spent may be less than what was saved before. */
  saveAccount: (key: string | null, account: AccountRecord, isLess?: boolean) => void
  /** A bucket of the group, or of a key in it. */
  bucket: (key: string | null, id: string) => BucketRecord | undefined
  saveBucket: (key: string | null, id: string, bucket: BucketRecord, isLess?: boolean) => void
  /** Forgets those of one party whose period ended before. */
  dropBuckets: (key: string | null, before: number) => void
  /**
   * An account of a key is being made: looks at a few others and forgets those that count nothing any more, with their buckets. So keys
   * that never come back make room for those that come.
   */
  dropIdle: (nowMs: number) => void
  /** `isFirst`: the caller knows that it is not among the open ones. */
  hold: (id: string, isFirst?: boolean) => HoldRecord | undefined
  /** `before`: what the store has of it; the same object where it was changed in place. */
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
