/** What a group and a key allow, and the first limit that refuses. Pure; counts nothing. */
import type { Limits } from '../types.js'
import { bucketsOf, newBucket, type BucketRecord, type HeldBucket } from './buckets.js'
import type { AccountRecord, GroupStore } from './group-store.js'
import type { Bucket, HoldAsk, Left, LimitName, Parties, LimitRefusal, Scope } from './types.js'
import { newWindow, secondOf, waitMs, windowSeconds } from './window.js'

/** When a caller may ask again after a refusal by `concurrency`, which time alone does not free. */
export const concurrencyRetryMs = 1_000

export interface Party {
  readonly scope: Scope
  /** Null: the group itself. */
  readonly key: string | null
  readonly limits: Limits
  readonly account: AccountRecord
  /** Its account has just been made. */
  readonly isNew: boolean
  readonly buckets: readonly OpenBucket[]
}

/** A bucket that is asked for. The hold keeps it as a `HeldBucket`. */
interface OpenBucket extends HeldBucket {
  readonly bucket: Bucket
  readonly record: BucketRecord
  /** It has just been made. */
  readonly isNew: boolean
}

/** A name for each account. The length keeps two pairs of names from ever giving one. */
export function accountName (group: string, key: string | null = null): string {
  return key === null ? `g:${group}` : `k:${group.length}:${group}:${key}`
}

export function accountOf (store: Pick<GroupStore, 'account'>, key: string | null): AccountRecord {
  return store.account(key) ?? newAccount()
}

function newAccount (): AccountRecord {
  return { spent: 0, held: 0, active: 0, window: newWindow() }
}

/** Accounts that are checked when one is made: more than one, or their number would only grow. */
export const idleLooks = 4

/** True if nothing is spent, nothing runs, and the minute is over: a new account would be the same. */
export function isIdle ({ spent, held, active, window }: AccountRecord, nowMs: number): boolean {
  if (spent !== 0 || held !== 0 || active !== 0) return false
  const newest = window.entries.at(-1)
  return newest === undefined || Math.abs(secondOf(nowMs) - newest.second) >= windowSeconds
}

export function limited (limits: Limits): boolean {
  return limits.balance !== undefined || limits.concurrency !== undefined ||
    limits.requestsPerMinute !== undefined || limits.tokensPerMinute !== undefined || limits.budgets !== undefined
}

const none: readonly never[] = []
const groupAlone: readonly Scope[] = ['group']
const keyAlone: readonly Scope[] = ['key']
const keyAndGroup: readonly Scope[] = ['key', 'group']

/** Whose limits count. The key comes first: its limits are narrower, and its owner can do something about them. */
export function scopesOf ({ groupLimits, keyLimits }: Parties): readonly Scope[] {
  if (limited(keyLimits)) return limited(groupLimits) ? keyAndGroup : keyAlone
  return limited(groupLimits) ? groupAlone : none
}

/** Of the parties that are counted, those that have a balance. */
export function balancesOf ({ groupLimits, keyLimits }: Parties): readonly Scope[] {
  if (keyLimits.balance !== undefined) return groupLimits.balance === undefined ? keyAlone : keyAndGroup
  return groupLimits.balance === undefined ? none : groupAlone
}

export function partiesOf (ask: HoldAsk, store: GroupStore): readonly Party[] {
  const { key, keyLimits, groupLimits } = ask
  const group = limited(groupLimits) ? partyOf(ask, 'group', null, groupLimits, store) : null
  if (!limited(keyLimits)) return group === null ? none : [group]
  const holder = partyOf(ask, 'key', key, keyLimits, store)
  return group === null ? [holder] : [holder, group]
}

function partyOf (ask: HoldAsk, scope: Scope, key: string | null, limits: Limits, store: GroupStore): Party {
  const wanted = bucketsOf(ask, scope)
  const buckets = wanted.length === 0 ? none : openBuckets(wanted, scope, key, store)
  const found = store.account(key)
  return { scope, key, limits, account: found ?? newAccount(), isNew: found === undefined, buckets }
}

/** Not inside of `partyOf`, which would then allocate for this closure even without buckets. */
function openBuckets (wanted: readonly Bucket[], scope: Scope, key: string | null, store: GroupStore): readonly OpenBucket[] {
  return wanted.map((bucket) => openBucket(bucket, scope, key, store))
}

export function openBucket (bucket: Bucket, scope: Scope, key: string | null, store: GroupStore): OpenBucket {
  const { id, unit } = bucket
  const found = store.bucket(key, id) ?? renamed(bucket, key, store)
  return { scope, id, unit, bucket, record: found ?? newBucket(bucket), isNew: found === undefined }
}

/** Those of all parties, the key's first. */
export function heldBuckets (parties: readonly Party[]): readonly HeldBucket[] {
  let held: readonly HeldBucket[] = none
  for (const { buckets } of parties) {
    if (buckets.length > 0) held = held.length === 0 ? buckets : [...held, ...buckets]
  }
  return held
}

/** Moves a bucket from its former id, once. What is held there is settled there, so here it counts as spent. */
function renamed ({ id, formerId }: Bucket, key: string | null, store: GroupStore): BucketRecord | undefined {
  const former = formerId === undefined ? undefined : store.bucket(key, formerId)
  if (formerId === undefined || former === undefined) return undefined
  const record = { ...former, spent: former.spent + former.held, held: 0 }
  store.saveBucket(key, id, record)
  store.saveBucket(key, formerId, { ...former, spent: 0 }, true)
  return record
}

export function leftOf (parties: readonly Party[]): Left {
  let group: number | null = null
  let key: number | null = null
  let inBuckets: number[] | undefined
  for (const { scope, limits: { balance }, account: { spent, held }, buckets } of parties) {
    const inBalance = balance === undefined ? null : balance - spent - held
    if (scope === 'group') group = inBalance
    else key = inBalance
    for (const { bucket, record } of buckets) {
      const left = bucket.amount - record.spent - record.held
      // A literal list of one has room for one; pushing to an empty list allocates for seventeen.
      if (inBuckets === undefined) inBuckets = [left]
      else inBuckets.push(left)
    }
  }
  return inBuckets === undefined ? { group, key } : { group, key, buckets: inBuckets }
}

/** The first refusal, null if the party allows everything. Limits that time does not free come first. */
export function refusal ({ scope, limits, account, buckets }: Party, ask: HoldAsk, entering: boolean, nowMs: number): LimitRefusal | null {
  const { window } = account
  const { balance, concurrency, requestsPerMinute, tokensPerMinute } = limits
  const { cost = 0 } = ask
  const tokens = Math.max(1, ask.tokens)
  const gone = account.spent + account.held
  if (balance !== undefined && gone + tokens > balance) return refused(scope, 'balance', balance, gone, 0)
  for (const { bucket: { id, unit, amount, endsAt }, record: { spent, held } } of buckets) {
    const need = unit === 'tokens' ? tokens : Math.max(1, cost)
    if (spent + held + need <= amount) continue
    return { ...refused(scope, 'budget', amount, spent + held, endsAt === null ? 0 : Math.max(0, endsAt - nowMs)), bucket: id }
  }
  if (concurrency !== undefined && entering && account.active >= concurrency) {
    return refused(scope, 'concurrency', concurrency, account.active, concurrencyRetryMs)
  }
  if (requestsPerMinute !== undefined && ask.requests > 0 && window.requests + ask.requests > requestsPerMinute) {
    const excess = window.requests + ask.requests - requestsPerMinute
    return refused(scope, 'requests', requestsPerMinute, window.requests, waitMs(window, 'requests', excess, nowMs))
  }
  if (tokensPerMinute !== undefined && window.tokens + tokens > tokensPerMinute) {
    const excess = window.tokens + tokens - tokensPerMinute
    return refused(scope, 'tokens', tokensPerMinute, window.tokens, waitMs(window, 'tokens', excess, nowMs))
  }
  return null
}

function refused (scope: Scope, limit: LimitName, allowed: number, used: number, retryAfterMs: number): LimitRefusal {
  return { ok: false, limit, scope, allowed, free: Math.max(0, allowed - used), retryAfterMs }
}
