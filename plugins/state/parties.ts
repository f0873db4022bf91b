/** What a group and a key allow, and the first thing that one of them refuses. Pure; counts nothing. */
import type { Limits } from '../request.js'
import type { HoldAsk, Left, LimitName, Refused, Scope } from './types.js'
import { waitMs, type Window } from './window.js'

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
  readonly name: string
  readonly limits: Limits
  readonly account: AccountRecord
}

/** The length keeps two pairs of names from ever giving one. */
export function accountName (group: string, key?: string): string {
  return key === undefined ? `g:${group}` : `k:${group.length}:${group}:${key}`
}

export function limited (limits: Limits): boolean {
  return limits.balance !== undefined || limits.concurrency !== undefined ||
    limits.requestsPerMinute !== undefined || limits.tokensPerMinute !== undefined
}

/** The key first: its limit is the narrower one, and the one that its holder can do something about. */
export function partiesOf (ask: HoldAsk, accountOf: (name: string) => AccountRecord): Party[] {
  const parties: Party[] = []
  const add = (scope: Scope, name: string, limits: Limits): void => {
    if (limited(limits)) parties.push({ scope, name, limits, account: accountOf(name) })
  }
  add('key', accountName(ask.group, ask.key), ask.keyLimits)
  add('group', accountName(ask.group), ask.groupLimits)
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
  const refuse = (limit: LimitName, allowed: number, used: number, retryAfterMs: number): Refused =>
    ({ ok: false, limit, scope, allowed, free: Math.max(0, allowed - used), retryAfterMs })
  const { balance, concurrency, requestsPerMinute, tokensPerMinute } = limits
  const tokens = Math.max(1, ask.tokens)
  const gone = account.spent + account.held
  if (balance !== undefined && gone + tokens > balance) return refuse('balance', balance, gone, 0)
  if (concurrency !== undefined && entering && account.active >= concurrency) {
    return refuse('concurrency', concurrency, account.active, concurrencyRetryMs)
  }
  if (requestsPerMinute !== undefined && ask.requests > 0 && window.requests + ask.requests > requestsPerMinute) {
    const excess = window.requests + ask.requests - requestsPerMinute
    return refuse('requests', requestsPerMinute, window.requests, waitMs(window, 'requests', excess, nowMs))
  }
  if (tokensPerMinute !== undefined && window.tokens + tokens > tokensPerMinute) {
    const excess = window.tokens + tokens - tokensPerMinute
    return refuse('tokens', tokensPerMinute, window.tokens, waitMs(window, 'tokens', excess, nowMs))
  }
  return null
}
