/**
 * The rules of limits and balances, over any shelf that keeps accounts and holds. The memory and lmdb engines run them
 * here inside one exclusive step; the Redis engine runs the same rules as scripts (`redis-scripts.ts`), and one suite
 * holds the two together.
 */
import { accountOf, leftOf, partiesOf, refusal, scopesOf, type AccountRecord } from './parties.js'
import type { Account, Decision, HoldAsk, Scope, Settlement } from './types.js'
import { advance, correct, count } from './window.js'

export interface HoldRecord {
  readonly id: string
  readonly group: string
  readonly key: string
  /** Parties that are counted, decided when the hold was made. */
  readonly scopes: readonly Scope[]
  tokens: number
  floor: number
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
 * Where accounts and holds of one group are kept. Every call sees the effect of the ones before. What a shelf hands out may
 * be what it keeps: it is saved after each change, and a hold whose state or deadline changes is saved as a new object.
 */
export interface Shelf {
  /** The account of the group, or of a key in it. Undefined for a party that was never counted. */
  account: (key: string | null) => AccountRecord | undefined
  saveAccount: (key: string | null, account: AccountRecord) => void
  hold: (id: string) => HoldRecord | undefined
  /** `before`: what the shelf has of it; the same object where it was changed in place. */
  saveHold: (hold: HoldRecord, before: HoldRecord | undefined) => void
  dropHold: (hold: HoldRecord) => void
  /** Holds whose deadline is not after `now`, at most `max`. */
  due: (now: number, max: number) => readonly HoldRecord[]
}

export interface Book {
  readonly shelfOf: (group: string) => Shelf
  readonly now: () => number
  readonly holdTtlMs: number
}

/** How long a charge is remembered by its request's id, so that a late settlement is counted once. */
export const rememberMs = 24 * 60 * 60_000
/** Holds that one call sweeps at most. */
export const sweepMax = 1_000

const unknown = { group: null, key: null }

/** Admits everything or changes nothing. */
export function hold (book: Book, ask: HoldAsk): Decision {
  const shelf = book.shelfOf(ask.group)
  const nowMs = book.now()
  sweepDue(shelf, nowMs)
  const found = shelf.hold(ask.id)
  if (found?.settled === true) return { ok: true, left: unknown }
  const open = found?.state === 'open' ? found : undefined
  const parties = partiesOf(ask, shelf)
  let second = secondOf(nowMs)
  for (const party of parties) {
    advance(party.account.window, second)
    const refused = refusal(party, ask, open === undefined, nowMs)
    if (refused !== null) return refused
  }
  for (const { key, account } of parties) {
    account.held += ask.tokens
    if (open === undefined) account.active += 1
    second = count(account.window, second, ask.requests, ask.tokens)
    shelf.saveAccount(key, account)
  }
  shelf.saveHold(open === undefined ? holdOf(book, ask, second, nowMs) : added(open, ask, second), found)
  return { ok: true, left: leftOf(parties) }
}

function holdOf ({ holdTtlMs }: Book, ask: HoldAsk, second: number, nowMs: number): HoldRecord {
  const { id, group, key, tokens, floor } = ask
  return { id, group, key, scopes: scopesOf(ask), tokens, floor, active: 1, second, deadline: nowMs + holdTtlMs, state: 'open' }
}

/** A later step of the same request. Its deadline stays: whoever runs it renews it. */
function added (open: HoldRecord, { tokens, floor }: HoldAsk, second: number): HoldRecord {
  open.tokens += tokens
  open.floor = floor
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

export function settle (book: Book, settlement: Settlement): void {
  const shelf = book.shelfOf(settlement.group)
  const found = shelf.hold(settlement.id) ?? strangerOf(settlement)
  if (found === null) return
  const nowMs = book.now()
  const second = secondOf(nowMs)
  forEachAccount(shelf, found, (account) => {
    account.spent += settlement.tokens
    if (found.state === 'closed') account.spent -= found.tokens
    else release(account, found, settlement.tokens, second)
  })
  if (settlement.late.length === 0) shelf.dropHold(found)
  else shelf.saveHold({ ...found, tokens: settlement.tokens, state: 'closed', settled: true, deadline: nowMs + rememberMs }, found)
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
    shelf.saveHold({ ...found, tokens: found.floor, active: 0, state: 'closed', deadline: nowMs + rememberMs }, found)
  }
  return due.length
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
function strangerOf ({ id, group, key, late }: Settlement): HoldRecord | null {
  if (late.length === 0) return null
  return { id, group, key, scopes: late, tokens: 0, floor: 0, active: 0, second: 0, deadline: 0, state: 'open' }
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
