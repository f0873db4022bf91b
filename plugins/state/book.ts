/**
 * The rules of limits and balances, over any shelf that keeps accounts and holds. The memory and lmdb engines run them
 * here inside one exclusive step; the Redis engine runs the same rules as scripts (`redis-scripts.ts`), and one suite
 * holds the two together.
 */
import { accountName, leftOf, partiesOf, refusal, type AccountRecord } from './parties.js'
import type { Account, Decision, HoldAsk, Scope, Settlement } from './types.js'
import { advance, correct, count, newWindow } from './window.js'

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
}

/** Where accounts and holds are kept. Every call sees the effect of the ones before. */
export interface Shelf {
  /** Undefined for a party that was never counted. */
  account: (name: string) => AccountRecord | undefined
  saveAccount: (name: string, account: AccountRecord) => void
  hold: (id: string) => HoldRecord | undefined
  saveHold: (hold: HoldRecord) => void
  dropHold: (hold: HoldRecord) => void
  /** Holds of a group whose deadline is not after `now`, at most `max`. */
  due: (group: string, now: number, max: number) => HoldRecord[]
}

export interface Book {
  readonly shelf: Shelf
  readonly now: () => number
  readonly holdTtlMs: number
}

/** How long a charge is remembered by its request's id, so that a late settlement is counted once. */
export const rememberMs = 24 * 60 * 60_000
/** Holds that one call sweeps at most. */
export const sweepMax = 1_000
/** Admits everything or changes nothing. */
export function hold (book: Book, ask: HoldAsk): Decision {
  const { shelf } = book
  sweep(book, ask.group)
  const nowMs = book.now()
  const open = openHold(shelf, ask.id)
  const parties = partiesOf(ask, (name) => accountOf(shelf, name))
  const entering = open === undefined
  for (const party of parties) {
    advance(party.account.window, secondOf(nowMs))
    const refused = refusal(party, ask, entering, nowMs)
    if (refused !== null) return refused
  }
  let second = secondOf(nowMs)
  for (const { name, account } of parties) {
    account.held += ask.tokens
    if (entering) account.active += 1
    second = count(account.window, second, ask.requests, ask.tokens)
    shelf.saveAccount(name, account)
  }
  shelf.saveHold({
    id: ask.id,
    group: ask.group,
    key: ask.key,
    scopes: parties.map(({ scope }) => scope),
    tokens: ask.tokens + (open?.tokens ?? 0),
    floor: ask.floor,
    active: open?.active ?? 1,
    second,
    deadline: nowMs + book.holdTtlMs,
    state: 'open',
  })
  return { ok: true, left: leftOf(parties) }
}

export function leave (book: Book, id: string): void {
  const found = openHold(book.shelf, id)
  if (found === undefined || found.active === 0) return
  for (const [name, account] of chargedAccounts(book.shelf, found)) {
    account.active -= 1
    book.shelf.saveAccount(name, account)
  }
  book.shelf.saveHold({ ...found, active: 0 })
}

export function settle (book: Book, settlement: Settlement): void {
  const { shelf } = book
  const found = shelf.hold(settlement.id) ?? strangerOf(settlement)
  if (found === null) return
  const nowMs = book.now()
  for (const [name, account] of chargedAccounts(shelf, found)) {
    account.spent += settlement.tokens
    if (found.state === 'closed') account.spent -= found.tokens
    else release(account, found, settlement.tokens, secondOf(nowMs))
    shelf.saveAccount(name, account)
  }
  if (settlement.late.length === 0) return shelf.dropHold(found)
  shelf.saveHold({ ...found, tokens: settlement.tokens, state: 'closed', deadline: nowMs + rememberMs })
}

export function renew (book: Book, ids: readonly string[]): void {
  for (const id of ids) {
    const found = openHold(book.shelf, id)
    if (found !== undefined) book.shelf.saveHold({ ...found, deadline: book.now() + book.holdTtlMs })
  }
}

export function sweep (book: Book, group: string): number {
  const { shelf } = book
  const nowMs = book.now()
  const due = shelf.due(group, nowMs, sweepMax)
  for (const found of due) {
    if (found.state === 'closed') {
      shelf.dropHold(found)
      continue
    }
    for (const [name, account] of chargedAccounts(shelf, found)) {
      account.spent += found.floor
      account.held -= found.tokens
      account.active -= found.active
      shelf.saveAccount(name, account)
    }
    shelf.saveHold({ ...found, tokens: found.floor, active: 0, state: 'closed', deadline: nowMs + rememberMs })
  }
  return due.length
}

export function read (book: Book, group: string, key?: string): Account {
  sweep(book, group)
  const { spent, held, active, window } = accountOf(book.shelf, accountName(group, key))
  advance(window, secondOf(book.now()))
  return { spent, held, active, requests: window.requests, tokens: window.tokens }
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

function chargedAccounts (shelf: Shelf, { group, key, scopes }: HoldRecord): Array<[string, AccountRecord]> {
  return scopes.map((scope) => {
    const name = scope === 'group' ? accountName(group) : accountName(group, key)
    return [name, accountOf(shelf, name)]
  })
}

function accountOf (shelf: Shelf, name: string): AccountRecord {
  return shelf.account(name) ?? { spent: 0, held: 0, active: 0, window: newWindow() }
}

function secondOf (ms: number): number {
  return Math.floor(ms / 1_000)
}
