/** Where requests go, and what whoever sends them must know of it: made by the upstreams plugin, used by the forward plugin. */
import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayError } from '../errors/gateway-error.js'
import type { ModelCall } from '../call/model-call.js'

/** A provider's secret, as it is now. */
export interface Secret {
  /** At once where it is known. Null: none is sent. Rejects with a gateway error where it cannot be had. */
  readonly current: () => string | null | Promise<string>
  /** As far as it is known without asking. */
  readonly known: () => string | null
  /** Another one in place of one that was refused; null where it never changes. */
  readonly renew: ((refused: string) => Promise<string>) | null
}

/** One upstream. */
export interface Upstream {
  readonly name: string
  readonly origin: string
  /** Host and port, as the `host` header says them. */
  readonly host: string
  /** Path before the version segment, or with `verbatim` before what follows it, without a slash at its end. May hold `{model}`. */
  readonly basePath: string
  /** No version is put behind `basePath`. */
  readonly verbatim: boolean
  /** Its own parameters, as they are written behind the `?`; empty for none. */
  readonly query: string
  /** In lower case. */
  readonly queryNames: ReadonlySet<string>
  /** Its own headers; names in lower case. */
  readonly headers: readonly Header[]
  /** The header that its secret stands in; null for the one of the request's family. */
  readonly credentialHeader: string | null
  readonly secret: Secret
  /** The caller's own secret travels on. */
  readonly forwards: boolean
  /** Names of models as callers say them, and as it knows them. */
  readonly models: ReadonlyMap<string, string>
  /** Upstreams of one account of a provider share its rate limits. */
  readonly account: string
  /** The protocols that it speaks, null for any. */
  readonly protocols: ReadonlySet<string> | null
}

export type Header = readonly [name: string, value: string]

/** One request as one upstream is to get it. */
export interface Call {
  readonly upstream: Upstream
  /** Path and query. */
  readonly path: string
  readonly body: Buffer | null
  /** What is the upstream's own among the headers: its credential is one of them. Nothing of the caller's stands by these names. */
  readonly headers: readonly Header[]
  /** Time to the reply's headers, in milliseconds; null for the transport's own. */
  readonly headersTimeoutMs: number | null
}

export type Called = Call | GatewayError

/** How one attempt failed, before a byte of its reply was passed on. */
export type Failure =
  | { readonly kind: 'transport', readonly error: Error, /** Anything of the request may have been sent. */ readonly sent: boolean }
  | { readonly kind: 'reply', readonly reply: KeptReply }
  /** The head of a stream told a failure, or broke off. */
  | { readonly kind: 'head', readonly reply: KeptReply }

/** A reply that was not passed on: it may still be, where no other one is better. */
export interface KeptReply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  /** Names and values by turns. */
  readonly rawHeaders: Buffer[]
  readonly body: Buffer
  /** What the body says: itself, unpacked where it is packed. */
  readonly text: Buffer
  /** Why it broke off, null where it is whole. */
  readonly error: Error | null
  readonly upstream: Upstream
}

/** Reads the head of a stream that is held: `more` is to come, `pass` it on, or it `failed`. */
export interface StreamHead {
  readonly push: (chunk: Buffer) => 'more' | 'pass' | 'failed'
}

/** The attempts of one request at a destination. One at a time. */
export interface Attempts {
  /** Begins the next attempt: where to send, or why to nowhere (any more). */
  next: () => Called | Promise<Called>
  /**
   * What to do with a reply of this status: `pass` it on, read it `whole` and ask, or, where it is a stream, hold what `openHead` wants to
   * see.
   */
  look: (status: number) => 'pass' | 'whole' | 'head'
  openHead: () => StreamHead
  /** The reply is passed on from here. `headers`: none where `look` said to pass it. */
  passed: (headers: KeptReply['headers']) => void
  /** The attempt failed. Milliseconds after which there is to be another; null: none, `last` is what the caller gets. */
  failed: (failure: Failure) => number | null | Promise<number | null>
  /** The most useful reply or failure of those that were told. */
  last: () => KeptReply | Error
  /** All is over: the reply that was passed on, or the waiting, as its caller has left. Once. */
  over: (end: 'complete' | 'broken' | 'left') => void
}

/** Small texts that a state engine remembers by name, for a while. A promise that rejects means that it cannot answer. */
export interface Notes {
  /** Null for a name that was never written, or is forgotten. */
  read: (name: string) => string | null | Promise<string | null>
  /** Remembers a text for `ttlMs` milliseconds. */
  write: (name: string, text: string, ttlMs: number) => void | Promise<void>
}

/** Where the requests of a group go: an upstream or a pool of them. */
export interface Destination {
  readonly name: string
  readonly upstreams: readonly Upstream[]
  /** For an upstream where there is nothing to decide: the request as it gets it, one attempt, no other. */
  readonly call: ((llm: ModelCall) => Called) | null
  /** `once`: what is sent cannot be sent a second time. */
  readonly open: (llm: ModelCall, headers: IncomingHttpHeaders, once: boolean) => Attempts
}
