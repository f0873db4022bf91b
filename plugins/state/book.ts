/**
 * The rules of limits, balances and budgets, over any shelf that keeps accounts and holds. The memory and lmdb engines run
 * them here inside one exclusive step; the Redis engine runs the same rules as a script (`redis-scripts.ts`), and one suite
 * holds the two together.
 */
import { bucketKeepMs, heldBuckets, newBucket, resize, tellReached } from './buckets.js'
import { accountOf, leftOf, partiesOf, refusal, scopesOf, type AccountRecord, type Party } from './parties.js'
import type { Book, HoldRecord, Shelf } from './shelf.js'
import type { Account, Amounts, Decision, HoldAsk, Reached, Settlement, Spending } from './types.js'
import { advance, correct, count } from './window.js'

/** How long a charge is remembered by its request's id, so that a late settlement is counted once. */
export const rememberMs = 24 * 60 * 60_000
/** Holds that one call sweeps at most. */
export const sweepMax = 1_000

const unknown = { group: null, key: null }
const nothing: readonly never[] = []

/** Admits everything or changes nothing. */
export function hold (book: Book, ask: HoldAsk): Decision {
  const shelf = book.shelfOf(ask.group)
  const nowMs = book.now()
  sweepDue(shelf, nowMs)
  const found = shelf.hold(ask.id)
  if (found?.settled === true) return { ok: true, left: unknown }
  const open = found?.state === 'open' ? found : undefined
  const parties = partiesOf(ask, shelf)
  const second = secondOf(nowMs)
  for (const party of parties) {
    advance(party.account.window, second)
    const refused = refusal(party, ask, open === undefined, nowMs)
    if (refused !== null) return refused
  }
  const at = take(shelf, ask, parties, open === undefined, nowMs)
  shelf.saveHold(open === undefined ? holdOf(book, ask, at, nowMs) : added(open, ask, at), found)
  return { ok: true, left: leftOf(parties) }
}

/** Returns the second that its tokens are counted in. */
function take (shelf: Shelf, ask: HoldAsk, parties: readonly Party[], entering: boolean, nowMs: number): number {
  let second = secondOf(nowMs)
  for (const { key, account, buckets } of parties) {
    account.held += ask.tokens
    if (entering) account.active += 1
    second = count(account.window, second, ask.requests, ask.tokens)
    shelf.saveAccount(key, account)
    for (const { bucket, record, isNew } of buckets) {
      resize(record, bucket.amount)
      record.held += bucket.unit === 'tokens' ? ask.tokens : ask.cost ?? 0
      if (isNew) shelf.dropBuckets(key, nowMs - bucketKeepMs)
      shelf.saveBucket(key, bucket.id, record)
    }
  }
  return second
}

function holdOf ({ holdTtlMs }: Book, ask: HoldAsk, second: number, nowMs: number): HoldRecord {
  const { id, group, key, tokens, floor, cost = 0, costFloor = 0 } = ask
  const scopes = scopesOf(ask)
  const buckets = heldBuckets(ask, scopes)
  return { id, group, key, scopes, buckets, tokens, cost, floor, costFloor, active: 1, second, deadline: nowMs + holdTtlMs, state: 'open' }
}

/** A later step of the same request. Its deadline stays: whoever runs it renews it. */
function added (open: HoldRecord, { tokens, floor, cost = 0, costFloor = 0 }: HoldAsk, second: number): HoldRecord {
  open.tokens += tokens
  open.cost += cost
  open.floor = floor
  open.costFloor = costFloor
  open.second = second
  return open
}

export function leave (book: Book, group: string, id: string): void {
  const shelf = book.shelfOf(group)
  const found = openHold(shelf, id)
  if (found === undefined || found.active === 0) return
  forEachAccount(shelf, found, (account) => { account.active -= 1 })
  found.active = 0
  shelf.saveHold(found, found)
}

export function settle (book: Book, settlement: Settlement): readonly Reached[] {
  const shelf = book.shelfOf(settlement.group)
  const found = shelf.hold(settlement.id) ?? strangerOf(shelf, settlement)
  if (found === null) return nothing
  const { tokens, cost = 0, late } = settlement
  const nowMs = book.now()
  const second = secondOf(nowMs)
  forEachAccount(shelf, found, (account) => {
    account.spent += tokens
    if (found.state === 'closed') account.spent -= found.tokens
    else release(account, found, tokens, second)
  })
  const reached: Reached[] = []
  charge(shelf, found, { tokens, cost }, reached)
  if (late.length === 0) shelf.dropHold(found)
  else shelf.saveHold({ ...found, tokens, cost, state: 'closed', settled: true, deadline: nowMs + rememberMs }, found)
  return reached
}

export function renew (book: Book, group: string, ids: readonly string[]): void {
  const shelf = book.shelfOf(group)
  for (const id of ids) {
    const found = openHold(shelf, id)
    if (found !== undefined) shelf.saveHold({ ...found, deadline: book.now() + book.holdTtlMs }, found)
  }
}

export function sweep (book: Book, group: string): number {
  return sweepDue(book.shelfOf(group), book.now())
}

export function read (book: Book, group: string, key: string | null = null): Account {
  const shelf = book.shelfOf(group)
  const nowMs = book.now()
  sweepDue(shelf, nowMs)
  const { spent, held, active, window } = accountOf(shelf, key)
  advance(window, secondOf(nowMs))
  return { spent, held, active, requests: window.requests, tokens: window.tokens }
}

export function readBucket (book: Book, id: string, group: string, key: string | null = null): Spending {
  const shelf = book.shelfOf(group)
  sweepDue(shelf, book.now())
  const { spent = 0, held = 0 } = shelf.bucket(key, id) ?? {}
  return { spent, held }
}

function sweepDue (shelf: Shelf, nowMs: number): number {
  const due = shelf.due(nowMs, sweepMax)
  for (const found of due) {
    if (found.state === 'closed') {
      shelf.dropHold(found)
      continue
    }
    forEachAccount(shelf, found, (account) => {
      account.spent += found.floor
      account.held -= found.tokens
      account.active -= found.active
    })
    const { floor: tokens, costFloor: cost } = found
    charge(shelf, found, { tokens, cost }, null)
    shelf.saveHold({ ...found, tokens, cost, active: 0, state: 'closed', deadline: nowMs + rememberMs }, found)
  }
  return due.length
}

/** Charges its buckets, in place of what it held or was charged before. `reached`: where it is told what that reaches; null: another settlement tells it. */
function charge (shelf: Shelf, found: HoldRecord, amounts: Amounts, reached: Reached[] | null): void {
  for (const held of found.buckets) {
    const { scope, id, unit } = held
    const owner = scope === 'group' ? null : found.key
    const record = shelf.bucket(owner, id)
    if (record === undefined) continue
    record.spent += amounts[unit]
    if (found.state === 'closed') record.spent -= found[unit]
    else record.held -= found[unit]
    if (reached !== null) tellReached(record, held, reached)
    shelf.saveBucket(owner, id, record)
  }
}

function release (account: AccountRecord, found: HoldRecord, tokens: number, second: number): void {
  account.held -= found.tokens
  account.active -= found.active
  advance(account.window, second)
  correct(account.window, found.second, second, tokens - found.tokens)
}

function openHold (shelf: Shelf, id: string): HoldRecord | undefined {
  const found = shelf.hold(id)
  return found?.state === 'open' ? found : undefined
}

/** A settlement whose hold was never made: counted only where it says whom to charge. */
function strangerOf (shelf: Shelf, { id, group, key, late, lateBuckets = nothing }: Settlement): HoldRecord | null {
  if (late.length === 0) return null
  for (const bucket of lateBuckets) {
    const owner = bucket.scope === 'group' ? null : key
    if (shelf.bucket(owner, bucket.id) === undefined) shelf.saveBucket(owner, bucket.id, newBucket(bucket))
  }
  const buckets = lateBuckets.map((bucket) => ({ scope: bucket.scope, id: bucket.id, unit: bucket.unit }))
  return { id, group, key, scopes: late, buckets, tokens: 0, cost: 0, floor: 0, costFloor: 0, active: 0, second: 0, deadline: 0, state: 'open' }
}

/** Changes and saves the account of each party that a hold counts for. */
function forEachAccount (shelf: Shelf, { key, scopes }: HoldRecord, change: (account: AccountRecord) => void): void {
  for (const scope of scopes) {
    const of = scope === 'group' ? null : key
    const account = accountOf(shelf, of)
    change(account)
    shelf.saveAccount(of, account)
  }
}

function secondOf (ms: number): number {
  return Math.floor(ms / 1_000)
}
