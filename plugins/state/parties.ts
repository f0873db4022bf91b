/** What a group and a key allow, and the first thing that one of them refuses. Pure; counts nothing. */
import type { Limits } from '../request.js'
import type { HoldAsk, Left, LimitName, Refused, Scope } from './types.js'
import { newWindow, waitMs, type Window } from './window.js'

export interface AccountRecord {
  spent: number
  held: number
  active: number
  readonly window: Window
}

/** Time alone frees no place under `concurrency`; this is when a caller may ask again. */
export const concurrencyRetryMs = 1_000

export interface Party {
  readonly scope: Scope
  /** Null: the group itself. */
  readonly key: string | null
  readonly limits: Limits
  readonly account: AccountRecord
}

interface Accounts {
  account: (group: string, key: string | null) => AccountRecord | undefined
}

/** A name for each account. The length keeps two pairs of names from ever giving one. */
export function accountName (group: string, key: string | null = null): string {
  return key === null ? `g:${group}` : `k:${group.length}:${group}:${key}`
}

export function accountOf (accounts: Accounts, group: string, key: string | null): AccountRecord {
  return accounts.account(group, key) ?? { spent: 0, held: 0, active: 0, window: newWindow() }
}

export function limited (limits: Limits): boolean {
  return limits.balance !== undefined || limits.concurrency !== undefined ||
    limits.requestsPerMinute !== undefined || limits.tokensPerMinute !== undefined
}

/** The key first: its limit is the narrower one, and the one that its holder can do something about. */
export function partiesOf ({ group, groupLimits, key, keyLimits }: HoldAsk, accounts: Accounts): Party[] {
  const parties: Party[] = []
  if (limited(keyLimits)) parties.push({ scope: 'key', key, limits: keyLimits, account: accountOf(accounts, group, key) })
  if (limited(groupLimits)) parties.push({ scope: 'group', key: null, limits: groupLimits, account: accountOf(accounts, group, null) })
  return parties
}

export function leftOf (parties: readonly Party[]): Left {
  const left: { group: number | null, key: number | null } = { group: null, key: null }
  for (const { scope, limits, account } of parties) {
    if (limits.balance !== undefined) left[scope] = limits.balance - account.spent - account.held
  }
  return left
}

/** Null where the party allows it all. What time cannot heal is named first. */
export function refusal ({ scope, limits, account }: Party, ask: HoldAsk, entering: boolean, nowMs: number): Refused | null {
  const { window } = account
  const { balance, concurrency, requestsPerMinute, tokensPerMinute } = limits
  const tokens = Math.max(1, ask.tokens)
  const gone = account.spent + account.held
  if (balance !== undefined && gone + tokens > balance) return refused(scope, 'balance', balance, gone, 0)
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

function refused (scope: Scope, limit: LimitName, allowed: number, used: number, retryAfterMs: number): Refused {
  return { ok: false, limit, scope, allowed, free: Math.max(0, allowed - used), retryAfterMs }
}
