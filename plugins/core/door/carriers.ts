import type { IncomingHttpHeaders } from 'node:http'
import { credentialHeaders, gatewayHeaders, signInHeaders } from '../../protocols/index.js'

const carriers = new Set([...credentialHeaders, ...signInHeaders, ...gatewayHeaders])

/** What would make of a request another one than was decided about: some frameworks take its method or its path from here. */
export const overrides: readonly string[] = [
  'x-http-method-override', 'x-http-method', 'x-method-override', 'x-original-url', 'x-original-uri', 'x-rewrite-url',
]

// Of this connection and not of the request (RFC 9110 7.6.1, 7.8; RFC 9113 8.2.2), or met here (`expect`). undici sends none of them.
const ofConnection: readonly string[] = ['connection', 'upgrade', 'http2-settings', 'expect', ...overrides]

/** True for a header that may carry a secret, in any case, and also where a server behind reads `_` as `-`. */
export function carriesCredential (name: string): boolean {
  const lower = name.toLowerCase()
  return carriers.has(lower) || (lower.includes('_') && carriers.has(lower.replaceAll('_', '-')))
}

/**
 * Removes every carrier of every family from a request that a host's own mount forwards. Headers that the caller lists
 * in `Connection` would be removed after the host added its own (CVE-2026-33805), so the list goes too.
 */
export function dropCredentials (headers: IncomingHttpHeaders): void {
  for (const name of Object.keys(headers)) {
    if (carriesCredential(name)) delete headers[name]
  }
  dropConnection(headers)
}

/** Removes what is between the caller and this server alone, and any other method than the request's own. */
export function dropConnection (headers: IncomingHttpHeaders): void {
  for (const name in headers) {
    if (ofConnection.includes(name.replaceAll('_', '-'))) delete headers[name]
  }
}
