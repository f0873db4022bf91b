/** How a hold ends: it is renewed, gives its place back, is settled, or is charged its floor once nobody renews it. */
import { amountIn, tellReached } from './buckets.js'
import { accountOf, openBucket } from './parties.js'
import type { AccountRecord, Engine, GroupStore, HoldRecord } from './group-store.js'
import type { Amounts, Reached, Scope, Settlement } from './types.js'
import { advance, correct, secondOf } from './window.js'

/** How long a charge is remembered by its request's id, so that a late settlement is counted once. */
export const rememberMs = 24 * 60 * 60_000
/** The most holds that one call sweeps. */
export const sweepMax = 1_000

const nothing: readonly never[] = []
const nothingHeld = { tokens: 0, cost: 0, floor: 0, costFloor: 0, active: 0, second: 0, deadline: 0 } as const

export function renew (engine: Engine, group: string, ids: readonly string[]): void {
  const store = engine.storeOf(group)
  for (const id of ids) {
    const found = openHold(store, id)
    if (found !== undefined) store.saveHold({ ...found, deadline: engine.now() + engine.holdTtlMs }, found)
  }
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
  for (const scope of found.scopes) settleAccount(store, found, scope, tokens, second)
  const reached: Reached[] = []
  charge(store, found, { tokens, cost }, reached)
  if (late.length === 0) store.dropHold(found)
  else store.saveHold({ ...found, tokens, cost, state: 'closed', settled: true, deadline: nowMs + rememberMs }, found)
  return reached
}

/** Charges the floor of expired holds, and forgets charges that were remembered for long enough. */
export function sweep (store: GroupStore, nowMs: number): void {
  for (const found of store.due(nowMs, sweepMax)) {
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
}

/**
 * Charges a hold's buckets, replacing what it held or was charged before. `reached` gets the shares that this reaches; null leaves
 * reporting them to a later settlement.
 */
function charge (store: GroupStore, found: HoldRecord, amounts: Amounts, reached: Reached[] | null): void {
  for (const held of found.buckets) {
    const { scope, id, unit } = held
    const amount = amountIn(amounts, unit)
    const before = amountIn(found, unit)
    const partyKey = scope === 'group' ? null : found.key
    const record = store.bucket(partyKey, id)
    if (record === undefined) continue
    record.spent += amount
    if (found.state === 'closed') record.spent -= before
    else record.held -= before
    if (reached !== null) tellReached(record, scope, id, reached)
    store.saveBucket(partyKey, id, record, amount < (found.state === 'closed' ? before : 0))
  }
}

/** Settles in the account of one party. A hold that was charged before is charged the difference. */
function settleAccount (store: GroupStore, found: HoldRecord, scope: Scope, tokens: number, second: number): void {
  const key = scope === 'group' ? null : found.key
  const account = accountOf(store, key)
  const isCharged = found.state === 'closed'
  if (found.balances.includes(scope)) account.spent += isCharged ? tokens - found.tokens : tokens
  if (!isCharged) release(account, found, tokens, second)
  store.saveAccount(key, account, tokens < (isCharged ? found.tokens : 0))
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

/** A hold for a settlement whose hold was never made: null unless the settlement says whom to charge. */
function strangerOf (store: GroupStore, settlement: Settlement): HoldRecord | null {
  const { id, group, key, late, lateBuckets = nothing, lateBalances = late } = settlement
  if (late.length === 0) return null
  for (const bucket of lateBuckets) {
    const partyKey = bucket.scope === 'group' ? null : key
    const { record, isNew } = openBucket(bucket, bucket.scope, partyKey, store)
    if (isNew) store.saveBucket(partyKey, bucket.id, record)
  }
  const buckets = lateBuckets.map((bucket) => ({ scope: bucket.scope, id: bucket.id, unit: bucket.unit }))
  return { id, group, key, scopes: late, balances: lateBalances, buckets, ...nothingHeld, state: 'open' }
}

/** Changes and saves the account of each party of a hold. `isSpent`: the party has a balance. */
function forEachAccount (
  store: GroupStore, { key, scopes, balances }: HoldRecord, change: (account: AccountRecord, isSpent: boolean) => void
): void {
  for (const scope of scopes) {
    const of = scope === 'group' ? null : key
    const account = accountOf(store, of)
    change(account, balances.includes(scope))
    store.saveAccount(of, account)
  }
}
