import type { IncomingHttpHeaders } from 'node:http'
import { credentialHeaders } from '../protocols/index.js'

/** True for a header that may carry a caller's secret, also where a server behind reads `_` as `-`. */
function isCredentialHeader (name: string): boolean {
  return carriers.has(name) || (name.includes('_') && carriers.has(name.replaceAll('_', '-')))
}

const carriers = new Set(credentialHeaders)

/**
 * Removes every carrier of every family from a request that a host's own mount forwards. Headers that the caller lists
 * in `Connection` would be removed after the host added its own (CVE-2026-33805), so the list goes too; so does
 * `Expect`, which the server has answered already and undici refuses to send.
 */
export function dropCredentials (headers: IncomingHttpHeaders): void {
  for (const name of Object.keys(headers)) {
    if (isCredentialHeader(name)) delete headers[name]
  }
  delete headers.connection
  delete headers.expect
}
