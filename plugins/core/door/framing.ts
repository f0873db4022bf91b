import type { IncomingHttpHeaders } from 'node:http'

/** What is checked, over HTTP/1 or 2. */
interface Framed {
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly httpVersion: string
}

/**
 * True for a request that two servers could read in two ways, while Node chooses one of them: no host, several, or an invalid one (RFC 9112
 * 3.2), including an empty one (RFC 9110 4.2.1), a body in another coding than `chunked` alone, or in that one under HTTP/1.0 (RFC 9112
 * 6.1).
 */
export function hasDoubtfulFraming ({ headers, rawHeaders, httpVersion }: Framed): boolean {
  const coding = headers['transfer-encoding']
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) return true
  if (headers.host === undefined) return httpVersion === '1.1'
  if (headers.host === '' || /[\s,/\\@?#]/.test(headers.host)) return true
  return countHosts(rawHeaders) > 1
}

/** Counted in the raw headers: Node drops all but the first. */
function countHosts (rawHeaders: readonly string[]): number {
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts
}
