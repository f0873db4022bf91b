/** The nouns of the gateway: data that plugins pass to each other. */
import type { Context } from '@opentelemetry/api'
import type { ProtocolLabel, StreamFacts } from '../protocols/index.js'

export type { ProtocolLabel, StreamFacts }

/** Disjoint token counts of one reply; their sum is the total. */
export interface TokenUsage {
  /** Beside what was read from or written to the provider's cache. */
  input: number
  cache_read: number
  cache_write_5m: number
  /** To be kept for an hour or longer. */
  cache_write_1h: number
  /** For a time that the reply does not state. */
  cache_write: number
  /** What the provider's tools added to the input, where the reply tells it apart. */
  tool_input: number
  /** Beside `reasoning`. */
  output: number
  reasoning: number
}

/** A view of the same tokens by kind of content; never added to `TokenUsage`. */
export interface ModalityTokens {
  direction: 'input' | 'output'
  modality: string
  tokens: number
  /** How many of them came from a cache, where the reply tells. */
  cached?: number
}

export type UsageMissing = 'no_usage' | 'parse_error' | 'client_abort' | 'upstream_abort' | 'too_large'

/** How a request ended (docs/metrics.md). */
export type Outcome =
  | 'ok' | 'client_error' | 'auth_error' | 'limited' | 'upstream_error' | 'gateway_error' | 'timeout'
  | 'client_abort' | 'truncated'

/** One value for each name, such as `team: search`. */
export type Labels = Readonly<Record<string, string>>

export type AbortSide = 'client' | 'upstream' | 'gateway'

/** Limits of a key or a group. Integers; an absent field is no limit. */
export interface Limits {
  /**
   * Requests in any 60 seconds.
   * @defaultValue none
   */
  requestsPerMinute?: number
  /**
   * Tokens of requests and replies in any 60 seconds.
   * @defaultValue none
   */
  tokensPerMinute?: number
  /**
   * Requests at the same time.
   * @defaultValue none
   */
  concurrency?: number
  /**
   * Tokens that may be spent in all.
   * @defaultValue none
   */
  balance?: number
  /**
   * What may be spent in each calendar period; all of them apply.
   * @defaultValue none
   */
  budgets?: readonly Budget[]
}

/** A budget in money or in tokens: exactly one of `cost` and `tokens`. */
export interface Budget {
  /**
   * In the currency of the prices; at most nine decimals.
   * @defaultValue none
   */
  cost?: number
  /**
   * Tokens of requests and replies.
   * @defaultValue none
   */
  tokens?: number
  /** Calendar period in `timezone`; weeks begin on Monday. `total` never ends. */
  period: 'hour' | 'day' | 'week' | 'month' | 'total'
  /**
   * IANA name, such as `Europe/Berlin`.
   * @defaultValue `UTC`
   */
  timezone?: string
}

interface ModelRoute {
  /** Names of models; `*` stands for any part of one. */
  readonly models: readonly string[]
  /** An upstream or a pool. */
  readonly upstream: string
}

/** What keys share: what they may use, where it goes, and their limits. */
export interface Group {
  readonly id: string
  readonly protocols: ReadonlySet<string>
  /** False allows no protocol: the group is for calls that do not pass through this gateway. */
  readonly thirdParty: boolean
  /** Upstream name for each protocol, or one for all. */
  readonly upstream: string | Readonly<Record<string, string>> | null
  /** Upstreams for some models; the first match wins over `upstream`. */
  readonly routes?: readonly ModelRoute[]
  /** Null allows any model. */
  readonly models: ReadonlySet<string> | null
  readonly limits: Limits
  /** What happens to limits while their store cannot answer (docs/keys-and-limits.md). */
  readonly onStoreFailure: 'closed' | 'local'
  readonly labels?: Labels
}

/** A known credential. Never holds the secret. */
export interface Key {
  readonly id: string
  readonly group: string
  readonly disabled: boolean
  /** Milliseconds since the epoch, null for never. */
  readonly expiresAt: number | null
  readonly limits: Limits
  readonly labels?: Labels
}

/** Which keys have changed: one by digest or id, those of a group, or every key (`group: '*'`). */
export interface KeyChange {
  readonly digest?: string
  readonly id?: string
  readonly group?: string
  /** It is not known whether anything has changed: keys are asked for again, and stay valid if the store cannot answer. */
  readonly missed?: true
}

/** What serves a request: a route of this package, an adapted mount, which spreads `proxyOptions()`, or any other route of the host. */
export type RouteKind = 'own' | 'adapted' | 'host'

/** Reads a reply's bytes as they pass. Made by the usage plugin, fed by whoever moves the bytes. */
export interface ReplyTap {
  /** Returns what the caller gets for this chunk: the chunk itself, a part of it, or null for nothing. */
  push: (chunk: Buffer) => Buffer | null
  /** The reply ended cleanly. Returns bytes that were held back, or null. */
  end: () => Buffer | null
  /** The reply broke off: record what was seen. */
  abort: (side: AbortSide) => void
  /** True once reading on cannot add to the usage. */
  readonly complete: boolean
  /** True once the event was read that nothing follows. */
  readonly lastEventSeen: boolean
  /** True once the reply has reported a failure, even if that is not complete yet. */
  readonly failed: boolean
  /** After `end`: false for a stream without its protocol's last event, which was cut. A promise while packed bytes are still read. */
  readonly whole: boolean | Promise<boolean>
  readonly streamFacts: StreamFacts
}

export type OpenTap = (statusCode: number, headers: Readonly<Record<string, unknown>>) => ReplyTap | null

/** When each thing happened: `performance.now()` milliseconds, 0 for not yet. */
export interface Times {
  bodyStartedAt: number
  bodyAt: number
  sentAt: number
  headersAt: number
  firstChunkAt: number
  lastChunkAt: number
  endedAt: number
}

/** A request's place in a trace, if a span of ours is active. */
export interface CallTrace {
  /** Of our span, for its log line. */
  readonly ids: TraceIds
  /** Headers that carry the trace upstream; null keeps the caller's own trace headers. */
  readonly headers: Record<string, string> | null
  /** The context in which the request is sent, so that the HTTP client's span is below ours. */
  readonly context: Context
}

/** Lower-case hex, as W3C trace context writes them. */
interface TraceIds {
  readonly traceId: string
  readonly spanId: string
}

/** The result of one attempt, for the log line and the span. */
export interface AttemptRecord {
  readonly upstream: string
  /** A closed word such as `ok`, `connect` or `rate_limited`. */
  readonly result: string
  /** 0 without a reply. */
  readonly status: number
  readonly durationMs: number
}
