import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReplyFromHooks } from '@fastify/reply-from'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Gateway } from '../core/gateway.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Destination } from '../core/upstream/upstream.js'
import type { DrainBudget } from './drain.js'
import type { HeaderReader, Headers } from './raw-headers.js'
import type { SlowReaders } from './slow-readers.js'

/** What an exchange must know of the request it serves; rides on the headers object, invisible on the wire. */
export interface ExchangeContext {
  readonly gateway: Gateway
  readonly llm: ModelCall
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  /** Null: where the host's mount goes. */
  readonly destination: Destination | null
  /** The host reads the reply itself and expects a stream. */
  readonly streamOnly: boolean
  /** What a host's mount makes of the reply's headers, null for nothing. */
  readonly rewriteHeaders: RewriteHeaders | null
}

export type RewriteHeaders = NonNullable<FastifyReplyFromHooks['rewriteHeaders']>

export const kContext = Symbol('fastify-llm-gateway.exchange')

/**
 * A header that no transport sends, as it is no name (RFC 9110 5.1): it stands on what must go to the upstream of its group,
 * so that a transport which does not know to take it there refuses it before it has sent anything. Ours takes it off.
 */
export const seal = ':llm-gateway'

/** Null: it is none of ours, and its mount may send it as it is. */
export interface MarkedHeaders extends IncomingHttpHeaders {
  [kContext]?: ExchangeContext | null
}

export interface ExchangeReply {
  statusCode: number
  headers: Headers
  /** Whole where it came in one piece with its headers: a small reply then needs no stream at all. */
  body: Buffer | Readable
}

/** `context` is the one that the exchange was made with, so that no closure need hold it. */
export type ExchangeDone = (error: Error | null, reply: ExchangeReply | undefined, context: ExchangeContext) => void

/** What all exchanges of a transport share. */
export interface Transport {
  readonly drains: DrainBudget
  readonly headers: HeaderReader
  readonly slow: SlowReaders
}
