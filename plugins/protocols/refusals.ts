/**
 * How providers word refusals that concern the account and not the request, and when to retry. Types and statuses are not reliable: a bad
 * key is 400 with one provider and 401 with another, a spent budget 400, 402, 403 or 429.
 */

/**
 * The account is spent, stopped or unknown. OpenAI: https://help.openai.com/en/articles/5955604; Anthropic:
 * https://docs.anthropic.com/en/api/errors; Gemini: https://ai.google.dev/gemini-api/docs/troubleshooting; Moonshot and Alibaba.
 */
const accountWords: readonly RegExp[] = [
  /"(?:insufficient_quota|credit_balance_exhausted|organization_usage_limit_exceeded|organization_spend_limit_exceeded|project_spend_limit_exceeded)"/,
  /"(?:enforced_spend_limit_reached|account_deactivated|billing_hard_limit_reached|API_KEY_INVALID|BILLING_DISABLED)"/,
  /"(?:billing_not_active|exceeded_current_quota_error|Arrearage)"/,
  /credit balance is too low/i,
  /api key not valid/i,
  /has been suspended/i,
]

/** Alibaba's words for too many tokens in a minute, told with the code of a spent account (https://help.aliyun.com/en/model-studio/error-code). */
const minuteWords = /error-code#token-limit/

const statusesWithWords: ReadonlySet<number> = new Set([400, 403, 429])

/** True for statuses whose body must be read to know whether the account is meant. */
export function mayNameAccount (status: number): boolean {
  return statusesWithWords.has(status)
}

/** No refusal of a provider is longer. */
function textOf (body: Buffer): string {
  return body.toString('utf8', 0, 16 * 1024)
}

/** Escaped letters, blanks or `_`, which no serializer writes: they may spell anything. */
const spelled = /\\u00(?:20|5f|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a])/i

/**
 * `said`: the contents of the request, in overlapping pieces. Providers repeat what they do not accept, such as the name of a field or the
 * value of a header: a caller could place these words there, and so stop the use of the credential for all others.
 */
export function namesAccount (body: Buffer, said: () => Iterable<string>): boolean {
  const text = textOf(body)
  const own = new Set(accountWords.flatMap((words) => words.exec(text)?.[0].replaceAll('"', '').toLowerCase() ?? []))
  if (own.size === 0 || minuteWords.test(text)) return false
  for (const piece of said()) {
    if (spelled.test(piece)) return false
    const lower = piece.toLowerCase()
    for (const words of own) if (lower.includes(words)) own.delete(words)
    if (own.size === 0) return false
  }
  return true
}

/**
 * The refusal concerns the request itself: an organisation or a project in a header of the caller, whose client takes it from the
 * environment; a file or cached content that is gone, or never existed; its content (https://openrouter.ai/docs/errors, and xAI, who
 * charges for each); or its size, which is more than the account may use in a minute, or has left.
 */
const requestWords: readonly RegExp[] = [
  /"(?:mismatched|invalid)_(?:organization|project)"/, /"USER_PROJECT_DENIED"/, /permission to access the file/i, /cachedcontent not found/i,
  /violates usage guidelines/i, /"flagged_input"/, /request too large for/i, /can only afford [1-9]/i,
]

/** True if a refusal says nothing about the credential, or its account, for other requests. */
export function namesRequest (body: Buffer): boolean {
  const text = textOf(body)
  return requestWords.some((words) => words.test(text))
}

type Headers = Readonly<Record<string, unknown>>

/** No provider's window is longer: a larger number is a point in time, in seconds or, if larger still, in milliseconds. */
const thirtyDays = 30 * 86_400
const endOfSeconds = 1e11
/** Headers that state when a window is free again. */
const resets = [
  'x-ratelimit-reset', 'x-ratelimit-reset-requests', 'x-ratelimit-reset-tokens',
  'anthropic-ratelimit-requests-reset', 'anthropic-ratelimit-input-tokens-reset', 'anthropic-ratelimit-output-tokens-reset',
] as const

/**
 * Milliseconds after which a refused request may be repeated, as stated by the reply; null if it does not say. `retry-after` is RFC 9110
 * 10.2.3, `retry-after-ms` is Azure's, the rest state windows, of which the first to end counts.
 */
export function waitMsOf (headers: Headers, body: Buffer, nowMs: number): number | null {
  return numberOf(headers['retry-after-ms']) ?? untilMs(headers['retry-after'], nowMs) ??
    smallest(resets.map((name) => untilMs(headers[name], nowMs))) ?? retryInfoMs(body)
}

/** Reads seconds, a point in time (OpenRouter's is in milliseconds since the epoch), `6m0s` or `850ms`, or a date. */
function untilMs (value: unknown, nowMs: number): number | null {
  const number = numberOf(value)
  if (number === null) return durationMs(value) ?? dateMs(value, nowMs)
  return number < thirtyDays ? number * 1_000 : Math.max(0, (number < endOfSeconds ? number * 1_000 : number) - nowMs)
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function durationMs (value: unknown): number | null {
  if (typeof value !== 'string' || !/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(value)) return null
  return [...value.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)].reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * Number(unitMs[String(unit)]), 0
  )
}

/** `google.rpc.RetryInfo`, which is in the body. */
function retryInfoMs (body: Buffer): number | null {
  const [, seconds] = /"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"/.exec(textOf(body)) ?? []
  return seconds === undefined ? null : Number(seconds) * 1_000
}

function dateMs (value: unknown, nowMs: number): number | null {
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs)
}

function numberOf (value: unknown): number | null {
  return typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : null
}

function smallest (values: ReadonlyArray<number | null>): number | null {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : Math.min(...known)
}
