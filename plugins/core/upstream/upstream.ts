/** Where requests go, and what is needed to send them: made by the upstreams plugin, used by the forward plugin. */
import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayError } from '../errors/gateway-error.js'
import type { ModelCall } from '../call/model-call.js'

/** A provider's secret, which may change. */
export interface Secret {
  /** Without a promise if it is known. Null: none is sent. Rejects with a gateway error if there is none to be had. */
  readonly current: () => string | null | Promise<string>
  /** What is known of it without asking. */
  readonly known: () => string | null
  /** Asks for another one after a refusal; null if it never changes. */
  readonly renew: ((refused: string) => Promise<string>) | null
}

/** One upstream. */
export interface Upstream {
  readonly name: string
  readonly origin: string
  /** Host and port, as in the `host` header. */
  readonly host: string
  /** Path before the version segment, or with `verbatim` before what follows the version; no slash at its end. May contain `{model}`. */
  readonly basePath: string
  /** No version is put behind `basePath`. */
  readonly verbatim: boolean
  /** Its own parameters, as written behind the `?`; empty for none. */
  readonly query: string
  /** In lower case. */
  readonly queryNames: ReadonlySet<string>
  /** Its own headers; names in lower case. */
  readonly headers: readonly Header[]
  /** The header for its secret; null for that of the request's family. */
  readonly credentialHeader: string | null
  readonly secret: Secret
  /** The caller's own secret is forwarded. */
  readonly forwards: boolean
  /** Its own names of models, by the names that callers use. */
  readonly models: ReadonlyMap<string, string>
  /** Upstreams of one account of a provider share its rate limits. */
  readonly account: string
  /** The protocols that it speaks, null for any. */
  readonly protocols: ReadonlySet<string> | null
}

export type Header = readonly [name: string, value: string]

/** One request as it is sent to one upstream. */
export interface Call {
  readonly upstream: Upstream
  /** Path and query. */
  readonly path: string
  readonly body: Buffer | null
  /** The upstream's own headers, its credential included. The caller's headers of these names are dropped. */
  readonly headers: readonly Header[]
  /** Time to the reply's headers, in milliseconds; null for the transport's own. */
  readonly headersTimeoutMs: number | null
}

export type Called = Call | GatewayError

/** How one attempt failed, before a byte of its reply was passed on. */
export type Failure =
  | { readonly kind: 'transport', readonly error: Error, /** Part of the request may have been sent. */ readonly sent: boolean }
  | { readonly kind: 'reply', readonly reply: KeptReply }
  /** The head of a stream reported a failure, or broke off. */
  | { readonly kind: 'head', readonly reply: KeptReply }

/** A reply that was not passed on yet. It may be later, if no other one is better. */
export interface KeptReply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  /** Alternating names and values. */
  readonly rawHeaders: Buffer[]
  readonly body: Buffer
  /** The decompressed body. */
  readonly text: Buffer
  /** Why it broke off, null if it is whole. */
  readonly error: Error | null
  readonly upstream: Upstream
}

/** Reads the head of a held stream, and says what to do: wait for `more`, `pass` it on, or it `failed`. */
export interface StreamHead {
  readonly push: (chunk: Buffer) => 'more' | 'pass' | 'failed'
  /** The stream has ended before `push` decided. */
  readonly end: () => 'pass' | 'failed'
}

/** The attempts of one request at a destination. One at a time. */
export interface Attempts {
  /** Begins the next attempt: what to send, or the reason for none. */
  next: () => Called | Promise<Called>
  /**
   * What to do with a reply of this status: `pass` it on; read it `whole` and report it by `failed`; or, if it is a stream, hold its `head`
   * until `openHead` decides.
   */
  look: (status: number) => 'pass' | 'whole' | 'head'
  openHead: () => StreamHead
  /** The reply is passed on from here. `headers`: empty if `look` said to pass it. */
  passed: (headers: KeptReply['headers']) => void
  /** The attempt failed. Returns the milliseconds until the next one; null for none: then the caller gets `last`. */
  failed: (failure: Failure) => number | null | Promise<number | null>
  /** The most useful reply or error of all attempts. */
  last: () => KeptReply | Error
  /** Called once, when the reply that was passed on has ended, or the caller has left. */
  over: (end: 'complete' | 'broken' | 'left') => void
}

/** Small texts that a state engine remembers by name, for a while. A promise that rejects means that it cannot answer. */
export interface Notes {
  /** Null for a name that was never written, or is forgotten. */
  read: (name: string) => string | null | Promise<string | null>
  /** Remembers a text for `ttlMs` milliseconds. */
  write: (name: string, text: string, ttlMs: number) => void | Promise<void>
  /** Reads and forgets: only one of all who take a text gets it. Without it, what a response in the background used is never charged. */
  take?: (name: string) => string | null | Promise<string | null>
}

/** Where the requests of a group go: an upstream or a pool of them. */
export interface Destination {
  readonly name: string
  readonly upstreams: readonly Upstream[]
  /** For an upstream without anything to decide: makes the one call. Null if attempts are needed (`open`). */
  readonly call: ((llm: ModelCall) => Called) | null
  /** `once`: the body is a stream, which cannot be sent a second time. */
  readonly open: (llm: ModelCall, headers: IncomingHttpHeaders, once: boolean) => Attempts
}
