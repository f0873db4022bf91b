/**
 * The rules of limits, balances and budgets, over any store that keeps accounts and holds: who is let in, and what is held. How holds
 * end is in `endings.ts`. The memory and lmdb engines run them here inside one exclusive step; the Redis engine runs the same rules
 * as a script (`state/redis/steps.ts`), and one suite holds the two together.
 */
import { bucketKeepMs, resize, tellReached } from './buckets.js'
import { sweep } from './endings.js'
import { accountOf, balancesOf, heldBuckets, leftOf, partiesOf, refusal, scopesOf, type Party } from './parties.js'
import type { Engine, GroupStore, HoldRecord } from './group-store.js'
import type { Account, Decision, HoldAsk, Reached, Spending } from './types.js'
import { advance, count, secondOf } from './window.js'

const unknown = { group: null, key: null }
const nothing: readonly never[] = []

/** Admits everything or takes nothing. */
export function hold (engine: Engine, ask: HoldAsk): Decision {
  const store = engine.storeOf(ask.group)
  const nowMs = engine.now()
  sweep(store, nowMs)
  const found = store.hold(ask.id, ask.isFirst)
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
  store.saveHold(open === undefined ? holdOf(engine, ask, parties, at, nowMs) : added(open, ask, at), found)
  return withReached({ ok: true, left: leftOf(parties) }, reached)
}

function withReached (decision: Decision, reached: readonly Reached[] = nothing): Decision {
  return reached.length === 0 ? decision : { ...decision, reached }
}

/** Also for an ask that is refused: a budget that is lowered below what is spent lets nobody in, so no settlement would report it. */
function resizeAll (store: GroupStore, { scope, key, buckets }: Party, reached?: Reached[]): Reached[] | undefined {
  for (const { bucket: { id, amount }, record } of buckets) {
    if (record.amount === amount) continue
    resize(record, amount)
    tellReached(record, scope, id, reached ??= [])
    store.saveBucket(key, id, record)
  }
  return reached
}

/** Returns the second in which its tokens are counted. */
function take (store: GroupStore, ask: HoldAsk, parties: readonly Party[], entering: boolean, nowMs: number): number {
  const { tokens, cost = 0 } = ask
  let second = secondOf(nowMs)
  for (const { key, account, isNew: isNewAccount, buckets } of parties) {
    if (isNewAccount && key !== null) store.dropIdle(nowMs)
    account.held += tokens
    if (entering) account.active += 1
    second = count(account.window, second, ask.requests, tokens)
    store.saveAccount(key, account)
    for (const { id, unit, record, isNew } of buckets) {
      record.held += unit === 'tokens' ? tokens : cost
      if (isNew) store.dropBuckets(key, nowMs - bucketKeepMs)
      store.saveBucket(key, id, record)
    }
  }
  return second
}

function holdOf ({ holdTtlMs }: Engine, ask: HoldAsk, parties: readonly Party[], second: number, nowMs: number): HoldRecord {
  const { id, group, key, tokens, floor, cost = 0, costFloor = 0 } = ask
  const scopes = scopesOf(ask)
  const balances = balancesOf(ask)
  const buckets = heldBuckets(parties)
  const deadline = nowMs + holdTtlMs
  return { id, group, key, scopes, balances, buckets, tokens, cost, floor, costFloor, active: 1, second, deadline, state: 'open' }
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

export function read (engine: Engine, group: string, key: string | null = null): Account {
  const store = engine.storeOf(group)
  const nowMs = engine.now()
  sweep(store, nowMs)
  const { spent, held, active, window } = accountOf(store, key)
  advance(window, secondOf(nowMs))
  return { spent, held, active, requests: window.requests, tokens: window.tokens }
}

export function readBucket (engine: Engine, id: string, group: string, key: string | null = null): Spending {
  const store = engine.storeOf(group)
  sweep(store, engine.now())
  const { spent = 0, held = 0 } = store.bucket(key, id) ?? {}
  return { spent, held }
}
