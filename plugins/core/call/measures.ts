/** Durations and sums of a settled request. Seconds; null if it does not apply. */
import type { ModelCall } from './model-call.js'
import type { TokenUsage } from '../types.js'

interface Leaf {
  readonly type: keyof TokenUsage
  readonly direction: 'input' | 'output'
}

export const leaves: readonly Leaf[] = [
  { type: 'input', direction: 'input' },
  { type: 'cache_read', direction: 'input' },
  { type: 'cache_write_5m', direction: 'input' },
  { type: 'cache_write_1h', direction: 'input' },
  { type: 'cache_write', direction: 'input' },
  { type: 'tool_input', direction: 'input' },
  { type: 'output', direction: 'output' },
  { type: 'reasoning', direction: 'output' },
]

/** In the order of `leaves`. Reads each by its name, because `usage[type]` costs ten times as much. */
export function leafTokens (usage: TokenUsage): readonly number[] {
  return [
    usage.input, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h, usage.cache_write, usage.tool_input,
    usage.output, usage.reasoning,
  ]
}

/** Token usage by a rule for its leaves. */
export function usageBy (countOf: (leaf: keyof TokenUsage) => number): TokenUsage {
  return {
    input: countOf('input'),
    cache_read: countOf('cache_read'),
    cache_write_5m: countOf('cache_write_5m'),
    cache_write_1h: countOf('cache_write_1h'),
    cache_write: countOf('cache_write'),
    tool_input: countOf('tool_input'),
    output: countOf('output'),
    reasoning: countOf('reasoning'),
  }
}

/** Tokens of one direction, all leaves together: cached input is input, reasoning is output. */
export function tokensOf (usage: TokenUsage, direction: Leaf['direction']): number {
  if (direction === 'output') return usage.output + usage.reasoning
  return usage.input + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h + usage.cache_write + usage.tool_input
}

/** Tokens written to a cache, whatever their lifetime. */
export function cacheWritten (usage: TokenUsage): number {
  return usage.cache_write_5m + usage.cache_write_1h + usage.cache_write
}

export function totalTokens (usage: TokenUsage): number {
  return tokensOf(usage, 'input') + tokensOf(usage, 'output')
}

/** True if a provider answered with success. On a host's mount without a tap, the caller's status shows that: the gateway makes no 2xx. */
export function succeeded ({ upstreamReply: { status: upstreamStatus }, status, usage: { replyFailed } }: ModelCall): boolean {
  if (replyFailed) return false
  const answered = upstreamStatus === 0 ? status : upstreamStatus
  return answered >= 200 && answered < 300
}

export function durationOf (llm: ModelCall): number {
  return (llm.times.endedAt - llm.startedAt) / 1_000
}

/**
 * The gateway's own time, without any wait for the upstream or for the caller, up or down. It is the sum of
 *
 * - the arrival of the request's headers until it was handed to the upstream connection, less the wait for the caller's
 *   body (`bodyStartedAt` to `bodyAt`): paths, auth with its key store, limits with theirs, validation, and whatever the
 *   host's hooks do in between;
 * - the upstream's headers until ours are written, and its last byte until our last one: reply headers, the host's hooks
 *   as far as they do not wait, and all reading of a reply that came in one piece (`upstreamReply.workMs`).
 *
 * Left out is the reading of single chunks of a stream, which a clock could tell from the waits around it only at the
 * cost of a look for each, and what follows once the caller has its reply: settlement, the log line, these metrics. The
 * benchmark measures both as CPU time. Null for requests that never went to an upstream, or on a mount that nobody adapted.
 */
export function overheadOf (llm: ModelCall): number | null {
  if (llm.times.sentAt === 0) return null
  return (llm.times.sentAt - llm.startedAt - (llm.times.bodyAt - llm.times.bodyStartedAt) + llm.upstreamReply.workMs) / 1_000
}

/** From arrival to the first chunk of a successful streamed reply: what the caller waits until words appear. */
export function firstChunkOf (llm: ModelCall): number | null {
  if (!llm.stream || !succeeded(llm) || llm.times.firstChunkAt === 0) return null
  return (llm.times.firstChunkAt - llm.startedAt) / 1_000
}

/** From the dispatch to the upstream until its last byte, that of an error, too, or until the call broke; for requests that were sent. */
export function upstreamDurationOf ({ abortedBy, errorCode, times: { sentAt, headersAt, lastChunkAt, endedAt } }: ModelCall): number {
  const over = abortedBy === null && errorCode === null ? Math.max(lastChunkAt, headersAt) : endedAt
  return (Math.max(over, sentAt) - sentAt) / 1_000
}

/** From the dispatch to the upstream to the first chunk of its successful streamed reply. */
export function upstreamFirstChunkOf (llm: ModelCall): number | null {
  return firstChunkOf(llm) === null ? null : (llm.times.firstChunkAt - llm.times.sentAt) / 1_000
}

/** The type of a failure, from a small set: our code, the upstream's status, or the outcome. Null if nothing failed. */
export function errorTypeOf (llm: ModelCall): string | null {
  if (llm.outcome === 'ok') return null
  if (llm.errorCode !== null) return llm.errorCode
  return llm.upstreamReply.status >= 400 ? String(llm.upstreamReply.status) : String(llm.outcome)
}

/** Seconds per output token of a streamed reply after its first chunk. Needs two tokens and a complete reply. */
export function perOutputTokenOf (llm: ModelCall): number | null {
  if (firstChunkOf(llm) === null || llm.usage.tokens === null || llm.outcome !== 'ok') return null
  const tokens = tokensOf(llm.usage.tokens, 'output')
  return tokens > 1 ? (llm.times.lastChunkAt - llm.times.firstChunkAt) / 1_000 / (tokens - 1) : null
}

/** `2xx` to `5xx`. */
export function classOfStatus (status: number): string {
  return `${Math.floor(status / 100)}xx`
}

/** The class of the upstream's status, `error` if no reply came. Null if nothing was sent. */
export function statusClassOf (llm: ModelCall): string | null {
  if (llm.upstreamReply.status > 0) return classOfStatus(llm.upstreamReply.status)
  return llm.times.sentAt === 0 || llm.abortedBy !== null ? null : 'error'
}
