import { gatewayError, type GatewayError } from './gateway-error.js'

/** The process has too much to do. The random delay keeps callers that were refused together from returning together. */
export function overloaded (headers: Readonly<Record<string, string>> = {}): GatewayError {
  return gatewayError('overloaded', {}, { headers, retryAfterMs: 1_000 + Math.random() * 2_000 })
}
