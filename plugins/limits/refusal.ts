import { gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import type { Family } from '../protocols/types.js'
import type { LimitName, LimitRefusal } from '../core/balances/types.js'
import { readBucketId } from './budgets.js'
import type { Refusal, RefusalCode } from './options.js'

const codes: Readonly<Record<LimitName, RefusalCode>> = {
  requests: 'request_rate_exceeded',
  tokens: 'token_rate_exceeded',
  concurrency: 'concurrency_exceeded',
  balance: 'insufficient_quota',
  budget: 'budget_exceeded',
}

const limitsOf: ReadonlyMap<string, string> = new Map(Object.entries(codes).map(([limit, code]) => [code, limit]))

/** Client libraries do not follow a `retry-after` above a minute, and use up their retries within seconds. A window is a second longer. */
const maxRetryAfterMs = 60_000

/**
 * The error for a limit's refusal, with the rate-limit headers of the family. `tooMany`: the tokens that the request may use,
 * where they are more than the limit of a whole minute, so that no client should wait and retry (docs/errors.md).
 */
export function limitError (refused: LimitRefusal, family: Family, balanceStatus: number, tooMany: number): GatewayError {
  const { limit, allowed, free, retryAfterMs } = refused
  const code = codes[limit]
  if (limit === 'balance') return gatewayError(code, {}, { status: balanceStatus })
  if (limit === 'budget') return gatewayError(code, budgetWords(refused), { status: balanceStatus, retryAfterMs })
  const rate = limit === 'concurrency' ? {} : family.limitHeaders({ limit, allowed, free, resetMs: retryAfterMs })
  const hopeless = limit === 'tokens' && tooMany > 0
  const headers = hopeless ? { ...rate, 'x-should-retry': 'false' } : rate
  const more = hopeless ? `, and this request alone may use ${tooMany}` : ''
  return gatewayError(code, { limit: allowed, more }, { retryAfterMs: Math.min(retryAfterMs, maxRetryAfterMs), headers })
}

/** The error for a host's own refusal; `limit` is null if its code is not that of a limit. */
export function hostError (
  { code, limit, retryAfterMs }: Refusal, balanceStatus: number
): { error: GatewayError, limit: string | null } {
  const isSpent = code === 'insufficient_quota' || code === 'budget_exceeded'
  const error = gatewayError(code, { limit: limit ?? 'set elsewhere', more: '', ...hostBudgetWords(retryAfterMs) }, {
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(isSpent && { status: balanceStatus }),
  })
  return { error, limit: limitsOf.get(code) ?? null }
}

/** The host alone knows more of its own budget. */
function hostBudgetWords (retryAfterMs: number | undefined): Record<string, string> {
  const reset = retryAfterMs === undefined ? 'Ask whoever set it when it resets.' : resetSentence(retryAfterMs)
  return { owner: 'this API key', period: 'its period', reset }
}

/** Which budget, and when it resets. No figures, and nothing of other keys or groups. */
function budgetWords ({ scope, bucket = '', retryAfterMs }: LimitRefusal): Record<string, string> {
  const { period, timezone } = readBucketId(bucket)
  const owner = scope === 'key' ? 'this API key' : 'its group'
  if (period === 'total') return { owner, period: 'its whole life', reset: 'It does not reset.' }
  return { owner, period: `this ${period} (${timezone})`, reset: resetSentence(retryAfterMs) }
}

function resetSentence (afterMs: number): string {
  return `It resets at ${new Date(Date.now() + afterMs).toISOString().replace(/\.\d+/, '')}.`
}
