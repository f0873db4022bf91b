/** What of a request the door decides by, told apart here and nowhere else. */
import type { IncomingHttpHeaders } from 'node:http'

/** Any other upgrade, such as the `h2c` that some HTTP libraries offer with each first request, is one to ignore (RFC 9110 7.8). */
export function isSocketUpgrade ({ upgrade, connection }: IncomingHttpHeaders): boolean {
  return upgrade !== undefined && /websocket/i.test(upgrade) && /(?:^|[\s,])upgrade(?:$|[\s,])/i.test(String(connection))
}

/**
 * A browser's question whether it may ask: without a body, and what it carries is not for anybody
 * (https://fetch.spec.whatwg.org/#cors-preflight-fetch).
 */
export function isPreflight (method: string, headers: Readonly<Record<string, unknown>>): boolean {
  return method === 'OPTIONS' && headers['origin'] !== undefined && headers['access-control-request-method'] !== undefined &&
    headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0'
}

/** `HEAD` of a base address is how some clients ask whether anybody is there. */
export function isProbe (method: string, path: string): boolean {
  return method === 'HEAD' && /^\/(?:v1(?:beta)?)?\/?$/.test(path)
}
