import { bucketKeepMs, type BucketRecord } from './buckets.js'
import type { AccountRecord, GroupStore, HoldRecord } from './group-store.js'
import { idleLooks, isIdle } from './parties.js'

/** Saves after which the holds of one state move to a new map. */
const savesPerMap = 1_000

/**
 * Holds of one state. Each lives equally long from its last save, so the order of saves is the order of deadlines.
 * The map is replaced at times: V8 links each outgrown table of a map to the next one, and once one of them is in old space, all later
 * tables and their holds stay until a full collection. That made every scavenge twice as long.
 */
class Holds {
  #byId = new Map<string, HoldRecord>()
  #saves = 0

  get (id: string): HoldRecord | undefined {
    return this.#byId.get(id)
  }

  save (hold: HoldRecord): void {
    this.#saves += 1
    if (this.#saves > savesPerMap + this.#byId.size) {
      this.#byId = new Map(this.#byId)
      this.#saves = 0
    }
    this.#byId.set(hold.id, hold)
  }

  drop (id: string): void {
    this.#byId.delete(id)
  }

  /** Adds the holds that are due, at most `max`; returns when the next one is due. */
  take (now: number, max: number, due: HoldRecord[]): number {
    let taken = 0
    for (const hold of this.#byId.values()) {
      if (hold.deadline > now || taken === max) return hold.deadline
      due.push(hold)
      taken += 1
    }
    return Infinity
  }
}

const none: readonly HoldRecord[] = []

/** What one group and its keys have used, and their holds, in maps of this process. */
export class MemoryGroupStore implements GroupStore {
  readonly #keys = new Map<string, AccountRecord>()
  /** Of the group itself. */
  readonly #ownBuckets = new Map<string, BucketRecord>()
  readonly #keyBuckets = new Map<string, Map<string, BucketRecord>>()
  readonly #open = new Holds()
  readonly #closed = new Holds()
  #account: AccountRecord | undefined
  /** No hold is due before. */
  #quietUntil = Infinity

  account (key: string | null): AccountRecord | undefined {
    return key === null ? this.#account : this.#keys.get(key)
  }

  saveAccount (key: string | null, account: AccountRecord): void {
    if (key === null) this.#account = account
    else this.#keys.set(key, account)
  }

  bucket (key: string | null, id: string): BucketRecord | undefined {
    return this.#bucketsOf(key)?.get(id)
  }

  saveBucket (key: string | null, id: string, bucket: BucketRecord): void {
    const buckets = this.#bucketsOf(key)
    if (buckets !== undefined) buckets.set(id, bucket)
    else if (key !== null) this.#keyBuckets.set(key, new Map([[id, bucket]]))
  }

  dropBuckets (key: string | null, before: number): void {
    const buckets = this.#bucketsOf(key)
    if (buckets === undefined) return
    for (const [id, { endsAt }] of buckets) if (endsAt !== null && endsAt < before) buckets.delete(id)
  }

  #bucketsOf (key: string | null): Map<string, BucketRecord> | undefined {
    return key === null ? this.#ownBuckets : this.#keyBuckets.get(key)
  }

  dropIdle (nowMs: number): void {
    let looks = 0
    for (const [key, account] of this.#keys) {
      if (looks === idleLooks) return
      looks += 1
      // One that stays moves to the end, and is checked again after all others.
      this.#keys.delete(key)
      if (!isIdle(account, nowMs) || this.#hasBuckets(key, nowMs - bucketKeepMs)) this.#keys.set(key, account)
    }
  }

  /** After those whose period ended before are forgotten. */
  #hasBuckets (key: string, before: number): boolean {
    this.dropBuckets(key, before)
    if (this.#keyBuckets.get(key)?.size === 0) this.#keyBuckets.delete(key)
    return this.#keyBuckets.has(key)
  }

  hold (id: string): HoldRecord | undefined {
    return this.#open.get(id) ?? this.#closed.get(id)
  }

  saveHold (hold: HoldRecord, before: HoldRecord | undefined): void {
    if (before === hold) return
    if (before !== undefined) this.dropHold(before)
    this.#holds(hold).save(hold)
    this.#quietUntil = Math.min(this.#quietUntil, hold.deadline)
  }

  dropHold (hold: HoldRecord): void {
    this.#holds(hold).drop(hold.id)
  }

  due (now: number, max: number): readonly HoldRecord[] {
    if (now < this.#quietUntil) return none
    const due: HoldRecord[] = []
    this.#quietUntil = Math.min(this.#open.take(now, max, due), this.#closed.take(now, max, due))
    return due
  }

  #holds ({ state }: HoldRecord): Holds {
    return state === 'open' ? this.#open : this.#closed
  }
}
