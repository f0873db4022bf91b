/**
 * Every error that the gateway itself can send to a caller: status, kind, outcome, retry, message.
 * `{name}` in a message is filled from the given values, which are never an address, a key or a raw URL.
 * `retry: false` becomes `x-should-retry: false`: trying again cannot help.
 */
import type { ErrorKind } from '../../protocols/types.js'
import type { Outcome } from '../types.js'

export interface ErrorRow {
  readonly status: number
  readonly kind: ErrorKind
  readonly outcome: Outcome
  readonly retry: boolean
  readonly message: string
}

function row (status: number, kind: ErrorKind, outcome: Outcome, retry: boolean, message: string): ErrorRow {
  return { status, kind, outcome, retry, message }
}

const badRequest = (message: string): ErrorRow => row(400, 'invalid_request', 'client_error', false, message)
const unauthorized = (message: string): ErrorRow => row(401, 'authentication', 'auth_error', false, message)
const forbidden = (message: string): ErrorRow => row(403, 'permission', 'auth_error', false, message)
const limited = (message: string): ErrorRow => row(429, 'rate_limit', 'limited', true, message)
const notFound = (message: string): ErrorRow => row(404, 'not_found', 'client_error', false, message)
const unavailable = (message: string): ErrorRow => row(503, 'overloaded', 'gateway_error', true, message)
const badGateway = (message: string): ErrorRow => row(502, 'internal', 'upstream_error', true, message)

export const errorTable = {
  // paths
  unknown_url: notFound(
    'Unknown request URL: {method} {path}. Use the base URL {baseUrl} with your client; if it does, this endpoint is not served here.'
  ),
  doubled_path: notFound(
    'The endpoint is in the URL twice. The base URL of your client should be {baseUrl}, without the path of an endpoint.'
  ),
  ambiguous_path: badRequest(
    'The URL path holds characters that could be read in two ways. Send it plainly, below the base URL {baseUrl}.'
  ),
  crowded_query: badRequest('The URL has more than 256 query parameters whose names are not plain words. Send fewer of them.'),
  method_not_allowed: row(405, 'invalid_request', 'client_error', false, 'Method {method} is not allowed here.'),
  upgrade_required: row(426, 'invalid_request', 'client_error', false, 'WebSocket is not offered here. Send an HTTP POST instead.'),
  unknown_action: notFound('Unknown action at the end of {method} {path}. The model name and the action are joined by a colon: {known}.'),

  // auth: wrappers of many providers know a wrong key by the first words (LiteLLM)
  key_in_query: badRequest('An API key in the URL is not accepted on this endpoint. Send it as a header.'),
  missing_api_key: unauthorized('No API key was given. Send it as {expected}.'),
  malformed_api_key: unauthorized('The API key is malformed. Send it as {expected}.'),
  duplicate_api_key: unauthorized('The request carries more than one API key.'),
  invalid_api_key: unauthorized('Incorrect API key provided: it is not known here.'),
  too_many_auth_failures: limited('Too many wrong API keys came from this address. Try again later.'),
  disabled_api_key: unauthorized('Incorrect API key provided: it has been disabled.'),
  expired_api_key: unauthorized('Incorrect API key provided: it has expired.'),
  missing_version: badRequest('Header {header} is required. Accepted: {accepted}.'),
  unsupported_version: badRequest('Header {header} has a value that is not accepted. Accepted: {accepted}.'),
  protocol_not_allowed: forbidden('This API key may not be used for {protocol}. It allows: {allowed}.'),
  model_not_allowed: forbidden('This API key may not use the model {model}.'),
  model_required: badRequest('The request must name its model: this API key allows only some.'),
  model_not_priced: forbidden('The requested model has no price here, so that it cannot be used.'),
  access_denied: forbidden('This API key may not make this request.'),
  insufficient_quota: row(
    403, 'billing', 'limited', false,
    'Insufficient balance: the balance of this API key is spent, or has less left than this request may use.'
  ),
  key_store_unavailable: unavailable('API keys cannot be checked at the moment. Try again shortly.'),

  // limits: agents (pi) take `too many tokens` for a conversation that is too long, and shorten it; `insufficient balance` and
  // `out of budget` keep a 403 from looking like a wrong key (OpenClaw), `too large` has pictures left out (Kimi Code)
  request_rate_exceeded: limited('Too many requests: the limit is {limit} a minute.'),
  token_rate_exceeded: limited('Rate limit reached: {limit} tokens a minute{more}.'),
  concurrency_exceeded: limited('Too many requests at the same time: the limit is {limit}.'),
  budget_exceeded: row(
    403, 'billing', 'limited', false,
    'Out of budget: the budget of {owner} for {period} is spent, or what is left is less than this request may cost. {reset}'
  ),
  limit_store_unavailable: unavailable('Limits cannot be checked at the moment. Try again shortly.'),

  // validation
  unsupported_media_type: row(415, 'invalid_request', 'client_error', false, 'The content type must be {expected}.'),
  unsupported_encoding: row(415, 'invalid_request', 'client_error', false, 'The request body must not be compressed.'),
  body_too_large: row(413, 'too_large', 'client_error', false, 'Request body too large: the limit is {maxBodyBytes} bytes.'),
  request_aborted: row(400, 'invalid_request', 'client_abort', true, 'The request broke off before its body was complete.'),
  missing_body: badRequest('The request has no body.'),
  invalid_json: badRequest('The request body is not valid JSON: {reason}.'),
  invalid_body: badRequest('{reason}'),
  usage_hidden: badRequest('{name} is not accepted here: the reply could hide its token usage.'),
  body_unchecked: row(503, 'overloaded', 'gateway_error', false, 'The request body could not be checked.'),
  bad_request: badRequest('The request could not be read.'),
  request_timeout: row(408, 'invalid_request', 'client_error', true, 'The request did not arrive in time.'),

  // host: what its own plugins refuse
  not_authorized: unauthorized('The request is not authorized.'),
  too_many_requests: limited('Too many requests. Try again later.'),
  overloaded: unavailable('The gateway is too busy for this request. Try again shortly.'),

  // forward: agents (pi) know by `connection error` and `timed out` that a stream may be asked for again
  upstream_unreachable: badGateway('The model provider cannot be reached.'),
  upstream_reset: badGateway('The model provider closed the connection before it answered.'),
  upstream_invalid: badGateway('The model provider sent a reply that cannot be read.'),
  upstream_timeout: row(504, 'timeout', 'timeout', true, 'The model provider timed out.'),
  upstream_aborted: row(502, 'internal', 'truncated', true, 'Connection error: the model provider broke off its reply.'),
  upstream_error: badGateway('The model provider answered with an error.'),
  upstream_credential_unavailable: unavailable('The credential for the model provider is not available at the moment. Try again shortly.'),
  upstream_busy: unavailable('The model providers have no free place for this request. Try again shortly.'),
  model_not_found: notFound('The requested model does not exist here.'),
  shutting_down: unavailable('The gateway is shutting down. Try again.'),
  internal_error: row(500, 'internal', 'gateway_error', true, 'The gateway failed to handle the request.'),
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof errorTable
