import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReplyFromHooks } from '@fastify/reply-from'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Gateway } from '../core/gateway.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Destination } from '../core/upstream/upstream.js'
import type { DrainBudget } from './drain.js'
import type { KeepAliveComments } from './keep-alive-comments.js'
import type { HeaderReader, Headers } from './raw-headers.js'
import type { SlowReaders } from './slow-readers.js'

/** What an exchange must know of its request. On a mount it travels on the headers object, under a symbol, invisible on the wire. */
export interface ExchangeContext {
  readonly gateway: Gateway
  readonly llm: ModelCall
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  /** Null for the upstream of the host's mount. */
  readonly destination: Destination | null
  /** The host reads the reply itself and expects a stream. */
  readonly streamOnly: boolean
  /** The function of a host's mount that rewrites the reply's headers, null for none. */
  readonly rewriteHeaders: RewriteHeaders | null
}

/** Of a request that reply-from does not send. */
export interface RelayContext extends ExchangeContext {
  readonly destination: Destination
}

type RewriteHeaders = NonNullable<FastifyReplyFromHooks['rewriteHeaders']>

export const kContext = Symbol('fastify-llm-gateway.exchange')

/**
 * A header that no transport sends, because its name is invalid (RFC 9110 5.1). It marks requests that must go to the upstream of their
 * group: a transport that does not know it refuses the request before anything is sent. Ours removes it.
 */
export const seal = ':llm-gateway'

/** Context null: not a model request; its mount may send it unchanged. */
export interface MarkedHeaders extends IncomingHttpHeaders {
  [kContext]?: ExchangeContext | null
}

export interface ExchangeReply {
  statusCode: number
  headers: Headers
  /** A buffer if it came whole together with its headers: a small reply then needs no stream. */
  body: Buffer | Readable
}

/** `context` is that of the exchange, so that no closure is needed for it. */
export type ExchangeDone = (error: Error | null, reply: ExchangeReply | undefined, context: ExchangeContext) => void

/** What all exchanges of a transport share. */
export interface Transport {
  readonly drains: DrainBudget
  readonly headers: HeaderReader
  readonly slow: SlowReaders
  readonly comments: KeepAliveComments
}
