import type { FastifyRequest } from 'fastify'
import { modelCallOf } from '../call/model-call.js'
import { ownAddress } from '../door/own-address.js'
import { GatewayError, gatewayError } from './gateway-error.js'
import type { ErrorCode } from './table.js'

// Codes of undici and reply-from, as they come out of an exchange that failed before it had a reply.
const byCode: ReadonlyMap<string, ErrorCode> = new Map([
  ['UND_ERR_HEADERS_TIMEOUT', 'upstream_timeout'],
  ['UND_ERR_BODY_TIMEOUT', 'upstream_timeout'],
  ['UND_ERR_CONNECT_TIMEOUT', 'upstream_timeout'],
  ['FST_REPLY_FROM_TIMEOUT', 'upstream_timeout'],
  ['FST_REPLY_FROM_HTTP_REQUEST_TIMEOUT', 'upstream_timeout'],
  ['FST_REPLY_FROM_HTTP2_REQUEST_TIMEOUT', 'upstream_timeout'],
  ['FST_REPLY_FROM_HTTP2_SESSION_TIMEOUT', 'upstream_timeout'],
  ['FST_REPLY_FROM_GATEWAY_TIMEOUT', 'upstream_timeout'],
  ['FST_ERR_HANDLER_TIMEOUT', 'upstream_timeout'],
  ['ETIMEDOUT', 'upstream_timeout'],
  ['UND_ERR_SOCKET', 'upstream_reset'],
  ['ECONNRESET', 'upstream_reset'],
  ['EPIPE', 'upstream_reset'],
  ['FST_REPLY_FROM_BAD_GATEWAY', 'upstream_invalid'],
  ['UND_ERR_HEADERS_OVERFLOW', 'upstream_invalid'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'upstream_invalid'],
  ['FST_REPLY_FROM_INTERNAL_SERVER_ERROR', 'upstream_unreachable'],
  ['FST_REPLY_FROM_SERVICE_UNAVAILABLE', 'upstream_unreachable'],
  ['LLM_GATEWAY_REPLY_CODED', 'upstream_invalid'],
  ['LLM_GATEWAY_STREAM_CUT', 'upstream_aborted'],
  ['UND_ERR_DESTROYED', 'shutting_down'],
  ['UND_ERR_CLOSED', 'shutting_down'],
])

// What Fastify or a plugin of the host answers on a route of ours, by status.
const byStatus: ReadonlyMap<number, ErrorCode> = new Map([
  [401, 'not_authorized'],
  [403, 'access_denied'],
  [404, 'unknown_url'],
  [405, 'method_not_allowed'],
  [413, 'body_too_large'],
  [415, 'unsupported_media_type'],
  [429, 'too_many_requests'],
  [502, 'upstream_unreachable'],
  [503, 'overloaded'],
  [504, 'upstream_timeout'],
])

/** Turns any error into one for callers; none of the original's text is kept. `replyStatus`: of the reply so far. */
export function fromForeign (error: unknown, request: FastifyRequest, replyStatus: number): GatewayError {
  if (error instanceof GatewayError) return error
  const code = property(error, 'code')
  const known = typeof code === 'string' ? byCode.get(code) : undefined
  if (known !== undefined) return gatewayError(known)
  const status = statusOf(error, replyStatus)
  return gatewayError(byStatus.get(status) ?? (status < 500 ? 'bad_request' : 'internal_error'), words(request), { status })
}

/** As in Fastify: 500 if neither the error nor the reply has an error status. */
function statusOf (error: unknown, replyStatus: number): number {
  const given = [property(error, 'statusCode'), property(error, 'status'), replyStatus].map(Number)
  return given.find((status) => status >= 400 && status <= 599) ?? 500
}

function words (request: FastifyRequest): Record<string, string> {
  const { method } = request
  const llm = modelCallOf(request)
  const path = llm === null ? '' : llm.url.replace(/\?.*/s, '')
  const baseUrl = llm === null ? '' : llm.endpoint.family.baseUrl(ownAddress(request))
  return { method, path, baseUrl, expected: 'application/json', maxBodyBytes: 'the allowed number of' }
}

/** Why an exchange with an upstream failed, from the error of its transport. */
export function fromTransport (error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  // Recognised by its name: undici sets no code if its parser's error has none.
  if (property(error, 'name') === 'HTTPParserError') return gatewayError('upstream_invalid')
  return gatewayError(byCode.get(String(property(error, 'code'))) ?? 'upstream_unreachable')
}

function property (value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && name in value ? Reflect.get(value, name) : undefined
}
