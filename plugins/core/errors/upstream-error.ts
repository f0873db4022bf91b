/** An upstream's error in words of ours: its status stays, and what it is about is told from that alone. */
import { gatewayError, type ErrorNature, type GatewayError } from './gateway-error.js'

const badRequest: ErrorNature = { kind: 'invalid_request', retry: false }

// As clients take these statuses themselves. Everything else from 400 on is the request's fault, from 500 on the provider's.
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
