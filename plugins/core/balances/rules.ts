/**
 * The rules of limits, balances and budgets, over any store that keeps accounts and holds. The memory and lmdb engines run
 * them here inside one exclusive step; the Redis engine runs the same rules as a script (`redis-scripts.ts`), and one suite
 * holds the two together.
 */
import { bucketKeepMs, heldBuckets, resize, tellReached } from './buckets.js'
import { accountOf, balancesOf, leftOf, openBucket, partiesOf, refusal, scopesOf, type AccountRecord, type Party } from './parties.js'
import type { Engine, GroupStore, HoldRecord } from './group-store.js'
import type { Account, Amounts, Decision, HoldAsk, Reached, Settlement, Spending } from './types.js'
import { advance, correct, count } from './window.js'

/** How long a charge is remembered by its request's id, so that a late settlement is counted once. */
export const rememberMs = 24 * 60 * 60_000
/** Holds that one call sweeps at most. */
export const sweepMax = 1_000

const unknown = { group: null, key: null }
const nothing: readonly never[] = []
const nothingHeld = { tokens: 0, cost: 0, floor: 0, costFloor: 0, active: 0, second: 0, deadline: 0 } as const

/** Admits everything or takes nothing. */
export function hold (engine: Engine, ask: HoldAsk): Decision {
  const store = engine.storeOf(ask.group)
  const nowMs = engine.now()
  sweepDue(store, nowMs)
  const found = store.hold(ask.id)
  if (found?.settled === true) return { ok: true, left: unknown }
  const open = found?.state === 'open' ? found : undefined
  const parties = partiesOf(ask, store)
  let reached: Reached[] | undefined
  const second = secondOf(nowMs)
  for (const party of parties) {
    advance(party.account.window, second)
    reached = resizeAll(store, party, reached)
    const refused = refusal(party, ask, open === undefined, nowMs)
    if (refused !== null) return withReached(refused, reached)
  }
  const at = take(store, ask, parties, open === undefined, nowMs)
  store.saveHold(open === undefined ? holdOf(engine, ask, at, nowMs) : added(open, ask, at), found)
  return withReached({ ok: true, left: leftOf(parties) }, reached)
}

function withReached (decision: Decision, reached: readonly Reached[] = nothing): Decision {
  return reached.length === 0 ? decision : { ...decision, reached }
}

/** Also for an ask that is refused: a budget that was lowered below what is spent of it lets none in, and no settlement would tell so. */
function resizeAll (store: GroupStore, { scope, key, buckets }: Party, reached?: Reached[]): Reached[] | undefined {
  for (const { bucket: { id, amount }, record } of buckets) {
    if (record.amount === amount) continue
    resize(record, amount)
    tellReached(record, scope, id, reached ??= [])
    store.saveBucket(key, id, record)
  }
  return reached
}

/** Returns the second that its tokens are counted in. */
function take (store: GroupStore, ask: HoldAsk, parties: readonly Party[], entering: boolean, nowMs: number): number {
  const { tokens, cost = 0 } = ask
  let second = secondOf(nowMs)
  for (const { key, account, isNew: isNewAccount, buckets } of parties) {
    if (isNewAccount && key !== null) store.dropIdle(nowMs)
    account.held += tokens
    if (entering) account.active += 1
    second = count(account.window, second, ask.requests, tokens)
    store.saveAccount(key, account)
    for (const { bucket, record, isNew } of buckets) {
      record.held += bucket.unit === 'tokens' ? tokens : cost
      if (isNew) store.dropBuckets(key, nowMs - bucketKeepMs)
      store.saveBucket(key, bucket.id, record)
    }
  }
  return second
}

function holdOf ({ holdTtlMs }: Engine, ask: HoldAsk, second: number, nowMs: number): HoldRecord {
  const { id, group, key, tokens, floor, cost = 0, costFloor = 0 } = ask
  const scopes = scopesOf(ask)
  const buckets = heldBuckets(ask, scopes)
  const deadline = nowMs + holdTtlMs
  return {
    id, group, key, scopes, balances: balancesOf(ask), buckets, tokens, cost, floor, costFloor, active: 1, second, deadline, state: 'open',
  }
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

export function leave (engine: Engine, group: string, id: string): void {
  const store = engine.storeOf(group)
  const found = openHold(store, id)
  if (found === undefined || found.active === 0) return
  forEachAccount(store, found, (account) => { account.active -= 1 })
  found.active = 0
  store.saveHold(found, found)
}

export function settle (engine: Engine, settlement: Settlement): readonly Reached[] {
  const store = engine.storeOf(settlement.group)
  const found = store.hold(settlement.id) ?? strangerOf(store, settlement)
  if (found === null) return nothing
  const { tokens, cost = 0, late } = settlement
  const nowMs = engine.now()
  const second = secondOf(nowMs)
  forEachAccount(store, found, (account, isSpent) => {
    if (isSpent) account.spent += found.state === 'closed' ? tokens - found.tokens : tokens
    if (found.state === 'open') release(account, found, tokens, second)
  }, found.state === 'closed' && tokens < found.tokens)
  const reached: Reached[] = []
  charge(store, found, { tokens, cost }, reached)
  if (late.length === 0) store.dropHold(found)
  else store.saveHold({ ...found, tokens, cost, state: 'closed', settled: true, deadline: nowMs + rememberMs }, found)
  return reached
}

export function renew (engine: Engine, group: string, ids: readonly string[]): void {
  const store = engine.storeOf(group)
  for (const id of ids) {
    const found = openHold(store, id)
    if (found !== undefined) store.saveHold({ ...found, deadline: engine.now() + engine.holdTtlMs }, found)
  }
}

export function sweep (engine: Engine, group: string): number {
  return sweepDue(engine.storeOf(group), engine.now())
}

export function read (engine: Engine, group: string, key: string | null = null): Account {
  const store = engine.storeOf(group)
  const nowMs = engine.now()
  sweepDue(store, nowMs)
  const { spent, held, active, window } = accountOf(store, key)
  advance(window, secondOf(nowMs))
  return { spent, held, active, requests: window.requests, tokens: window.tokens }
}

export function readBucket (engine: Engine, id: string, group: string, key: string | null = null): Spending {
  const store = engine.storeOf(group)
  sweepDue(store, engine.now())
  const { spent = 0, held = 0 } = store.bucket(key, id) ?? {}
  return { spent, held }
}

function sweepDue (store: GroupStore, nowMs: number): number {
  const due = store.due(nowMs, sweepMax)
  for (const found of due) {
    if (found.state === 'closed') {
      store.dropHold(found)
      continue
    }
    forEachAccount(store, found, (account, isSpent) => {
      if (isSpent) account.spent += found.floor
      account.held -= found.tokens
      account.active -= found.active
    })
    const { floor: tokens, costFloor: cost } = found
    charge(store, found, { tokens, cost }, null)
    store.saveHold({ ...found, tokens, cost, active: 0, state: 'closed', deadline: nowMs + rememberMs }, found)
  }
  return due.length
}

/**
 * Charges its buckets, in place of what it held or was charged before. `reached`: where it is told what that reaches; null: another
 * settlement tells it.
 */
function charge (store: GroupStore, found: HoldRecord, amounts: Amounts, reached: Reached[] | null): void {
  for (const held of found.buckets) {
    const { scope, id, unit } = held
    const partyKey = scope === 'group' ? null : found.key
    const record = store.bucket(partyKey, id)
    if (record === undefined) continue
    record.spent += amounts[unit]
    if (found.state === 'closed') record.spent -= found[unit]
    else record.held -= found[unit]
    if (reached !== null) tellReached(record, scope, id, reached)
    store.saveBucket(partyKey, id, record, found.state === 'closed' && amounts[unit] < found[unit])
  }
}

function release (account: AccountRecord, found: HoldRecord, tokens: number, second: number): void {
  account.held -= found.tokens
  account.active -= found.active
  advance(account.window, second)
  correct(account.window, found.second, second, tokens - found.tokens)
}

function openHold (store: GroupStore, id: string): HoldRecord | undefined {
  const found = store.hold(id)
  return found?.state === 'open' ? found : undefined
}

/** A settlement whose hold was never made: counted only where it says whom to charge. */
function strangerOf (store: GroupStore, { id, group, key, late, lateBuckets = nothing }: Settlement): HoldRecord | null {
  if (late.length === 0) return null
  for (const bucket of lateBuckets) {
    const partyKey = bucket.scope === 'group' ? null : key
    const { record, isNew } = openBucket(bucket, partyKey, store)
    if (isNew) store.saveBucket(partyKey, bucket.id, record)
  }
  const buckets = lateBuckets.map((bucket) => ({ scope: bucket.scope, id: bucket.id, unit: bucket.unit }))
  return { id, group, key, scopes: late, balances: late, buckets, ...nothingHeld, state: 'open' }
}

/** Changes and saves the account of each party that a hold counts for. `isSpent`: what it used is taken from a balance. */
function forEachAccount (
  store: GroupStore, { key, scopes, balances }: HoldRecord, change: (account: AccountRecord, isSpent: boolean) => void, isLess = false
): void {
  for (const scope of scopes) {
    const of = scope === 'group' ? null : key
    const account = accountOf(store, of)
    change(account, balances.includes(scope))
    store.saveAccount(of, account, isLess)
  }
}

function secondOf (ms: number): number {
  return Math.floor(ms / 1_000)
}
