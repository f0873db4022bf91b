/** Replaces an upstream's error by one of ours: the status stays, and the kind is derived from it. */
import { gatewayError, type ErrorNature, type GatewayError } from '../core/errors/gateway-error.js'

const badRequest: ErrorNature = { kind: 'invalid_request', retry: false }

// As client libraries interpret these statuses. Any other 4xx is the request's fault, any other 5xx the provider's.
const byStatus: ReadonlyMap<number, ErrorNature> = new Map<number, ErrorNature>([
  [401, { kind: 'authentication', retry: false }],
  [402, { kind: 'billing', retry: false }],
  [403, { kind: 'permission', retry: false }],
  [404, { kind: 'not_found', retry: false }],
  [408, { kind: 'invalid_request', retry: true }],
  [409, { kind: 'invalid_request', retry: true }],
  [413, { kind: 'too_large', retry: false }],
  [425, { kind: 'invalid_request', retry: true }],
  [429, { kind: 'rate_limit', retry: true }],
  [503, { kind: 'overloaded', retry: true }],
  [504, { kind: 'timeout', retry: true }],
  [529, { kind: 'overloaded', retry: true }],
])

export function upstreamError (status: number): GatewayError {
  const nature = byStatus.get(status) ?? (status >= 400 && status < 500 ? badRequest : {})
  return gatewayError('upstream_error', {}, { status, ...nature })
}
