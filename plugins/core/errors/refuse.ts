import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Family } from '../../protocols/types.js'
import { modelCallOf } from '../call/model-call.js'
import { cutUntaken, drainUpload, sendAndLinger } from './drain-upload.js'
import { errorText, type GatewayError } from './gateway-error.js'

/** Called when a request whose path is ours but no endpoint is answered with `error`. */
export type RefusedUrlListener = (request: FastifyRequest, family: Family, error: GatewayError) => void

/**
 * Answers with one of our own errors in the family's envelope. Hooks call it instead of
 * throwing, so that a host's error handler neither sees nor changes it. Works before the body was read: the rest of an
 * upload is drained within bounds, because a caller that reads only after it wrote would otherwise see a reset.
 */
export function refuse (reply: FastifyReply, family: Family, error: GatewayError): FastifyReply {
  const { request } = reply
  const llm = modelCallOf(request)
  const requestId = llm?.id ?? request.id
  if (llm !== null) {
    llm.errorCode = error.code
    llm.outcome ??= error.outcome
  }
  const drained = drainUpload(request.raw)
  setErrorHead(reply, error, requestId)
  cutUntaken(reply)
  const text = errorText(family, error, requestId)
  // An error that closes the connection does so on purpose: what still comes on it is not to be read. Over HTTP/2 nothing is closed.
  if (drained === null || error.headers['connection'] === 'close' || request.raw.httpVersionMajor > 1) return reply.send(text)
  return sendAndLinger(reply, text, drained)
}

/** Sets status and headers of an error reply. A `retry-after` or `x-should-retry` of the host or the upstream is kept. */
export function setErrorHead (reply: FastifyReply, error: GatewayError, requestId: string): void {
  const retryAfter = reply.getHeader('retry-after')
  const shouldRetry = reply.getHeader('x-should-retry')
  // Of a reply that was to be sent in its place.
  reply.removeHeader('content-encoding')
  reply.code(error.statusCode).headers(errorHeaders(error, requestId))
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  if (shouldRetry !== undefined) reply.header('x-should-retry', shouldRetry)
}

/** Headers of an error reply: type, ids, and what a client library needs for retries. */
export function errorHeaders (error: GatewayError, requestId: string): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'application/json; charset=utf-8',
    // It may repeat the host that its caller named, and caches keep a 404 for whoever asks next.
    'cache-control': 'no-store',
    'x-request-id': requestId,
    'request-id': requestId,
    ...error.headers,
  }
  if (!error.retry) headers['x-should-retry'] = 'false'
  if (error.statusCode === 429 || error.statusCode === 503) {
    headers['retry-after'] = String(Math.max(1, Math.ceil((error.retryAfterMs ?? 1_000) / 1_000)))
  }
  return headers
}
