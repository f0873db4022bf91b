import type { IncomingHttpHeaders } from 'node:http'
import { credentialHeaders, gatewayChoices, gatewayHeaders, signInHeaders } from '../../protocols/index.js'

const secrets = new Set([...credentialHeaders, ...signInHeaders, ...gatewayHeaders])

/**
 * Headers from which some frameworks take the method or the path, so that the request would not be the one that was decided about. Those of
 * the path repeat the caller's address as it came to a server in front, and so the key in its query: Envoy's and Azure App Service's, too.
 */
export const overrides: readonly string[] = [
  'x-http-method-override', 'x-http-method', 'x-method-override', 'x-original-url', 'x-original-uri', 'x-rewrite-url',
  'x-envoy-original-path', 'x-waws-unencoded-url', 'x-ms-original-url', 'x-forwarded-uri', 'x-request-uri',
]

// Headers of this connection (RFC 9110 7.6.1, 7.8; RFC 9113 8.2.2), or answered here (`expect`). undici sends none of them.
const ofConnection: readonly string[] = ['connection', 'upgrade', 'http2-settings', 'expect', ...overrides]

/** True for a header that may hold a secret, in any case, and also with `_` for `-`, as some servers read it. */
export function holdsSecret (name: string): boolean {
  return secrets.has(spelled(name))
}

/** The same, and for one by which a gateway behind chooses a secret that it has, or where to send one. */
export function carriesCredential (name: string): boolean {
  const asked = spelled(name)
  return secrets.has(asked) || gatewayChoices.test(asked)
}

function spelled (name: string): string {
  return name.toLowerCase().replaceAll('_', '-')
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

/** Removes headers that concern only the caller's connection to this server, and those of another method, path or body. */
export function dropConnection (headers: IncomingHttpHeaders): void {
  for (const name in headers) {
    if (ofConnection.includes(name.replaceAll('_', '-')) || tellsOtherBody(name)) delete headers[name]
  }
}

/** Servers that speak CGI, WSGI or PSGI may take `content_type` for `content-type`, and read another body than was checked. */
export function tellsOtherBody (name: string): boolean {
  return name.startsWith('content_')
}
