import type { FastifyRequest } from 'fastify'
import { fieldOf } from '../body/json-object.js'
import { modelCallOf } from '../call/model-call.js'
import { ownAddress } from '../door/own-address.js'
import { withoutQuery } from '../url/query.js'
import { GatewayError, gatewayError } from './gateway-error.js'
import type { ErrorCode } from './table.js'

/** Errors of an exchange that failed before it had a reply, each with its codes of undici and reply-from. */
const codesOf: ReadonlyArray<readonly [error: ErrorCode, ...codes: string[]]> = [
  [
    'upstream_timeout',
    'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT', 'FST_REPLY_FROM_TIMEOUT',
    'FST_REPLY_FROM_HTTP_REQUEST_TIMEOUT', 'FST_REPLY_FROM_HTTP2_REQUEST_TIMEOUT', 'FST_REPLY_FROM_HTTP2_SESSION_TIMEOUT',
    'FST_REPLY_FROM_GATEWAY_TIMEOUT', 'FST_ERR_HANDLER_TIMEOUT', 'ETIMEDOUT',
  ],
  ['upstream_reset', 'UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'],
  [
    'upstream_invalid',
    'FST_REPLY_FROM_BAD_GATEWAY', 'UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'LLM_GATEWAY_REPLY_CODED',
  ],
  ['upstream_unreachable', 'FST_REPLY_FROM_INTERNAL_SERVER_ERROR', 'FST_REPLY_FROM_SERVICE_UNAVAILABLE'],
  ['upstream_aborted', 'LLM_GATEWAY_STREAM_CUT'],
  ['shutting_down', 'UND_ERR_DESTROYED', 'UND_ERR_CLOSED'],
]
const byCode = new Map(codesOf.flatMap(([error, ...codes]) => codes.map((code) => [code, error] as const)))

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
  const code = fieldOf(error, 'code')
  const known = typeof code === 'string' ? byCode.get(code) : undefined
  if (known !== undefined) return gatewayError(known)
  const status = statusOf(error, replyStatus)
  return gatewayError(byStatus.get(status) ?? (status < 500 ? 'bad_request' : 'internal_error'), words(request), { status })
}

/** As in Fastify: 500 if neither the error nor the reply has an error status. */
function statusOf (error: unknown, replyStatus: number): number {
  const given = [fieldOf(error, 'statusCode'), fieldOf(error, 'status'), replyStatus].map(Number)
  return given.find((status) => status >= 400 && status <= 599) ?? 500
}

function words (request: FastifyRequest): Record<string, string> {
  const { method } = request
  const llm = modelCallOf(request)
  const path = withoutQuery(llm?.url ?? '')
  const baseUrl = llm?.endpoint.family.baseUrl(ownAddress(request)) ?? ''
  return { method, path, baseUrl, expected: 'application/json', maxBodyBytes: 'the allowed number of' }
}

/** Why an exchange with an upstream failed, from the error of its transport. */
export function fromTransport (error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  // Recognised by its name: undici sets no code if its parser's error has none.
  if (fieldOf(error, 'name') === 'HTTPParserError') return gatewayError('upstream_invalid')
  return gatewayError(byCode.get(String(fieldOf(error, 'code'))) ?? 'upstream_unreachable')
}
