/** What kind of arrival a request is, for the door (`door.ts`). Recognised here and nowhere else. */
import type { FastifyRequest } from 'fastify'

type Upgradable = Pick<FastifyRequest, 'headers' | 'raw'>

/** True for a WebSocket. Any other upgrade, such as the `h2c` that some HTTP libraries offer first, is to be ignored (RFC 9110 7.8). */
export function isSocketUpgrade ({ headers: { upgrade, connection }, raw }: Upgradable): boolean {
  return upgrade !== undefined && /websocket/i.test(upgrade) &&
    (isTakenAsUpgrade(raw) || /(?:^|[\s,])upgrade(?:$|[\s,])/i.test(String(connection)))
}

/** True if Node has handed the connection to the listeners for upgrades. It may do so for a header beyond the 2,000 that it shows. */
export function isTakenAsUpgrade (raw: object): boolean {
  return Reflect.get(raw, 'upgrade') === true
}

/**
 * A browser's question whether it may send a request. It has no body and no credential
 * (https://fetch.spec.whatwg.org/#cors-preflight-fetch).
 */
export function isPreflight (method: string, headers: Readonly<Record<string, unknown>>): boolean {
  return method === 'OPTIONS' && headers['origin'] !== undefined && headers['access-control-request-method'] !== undefined &&
    headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0'
}

/** The method of a request; for a preflight, that of the request to come. */
export function methodAsked ({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): string {
  return isPreflight(method, headers) ? String(headers['access-control-request-method']) : method
}

/** `HEAD` of a base address, at the root or below the gateway's `prefix`: some clients check so whether a server is there. */
export function isProbe (method: string, path: string, prefix: string): boolean {
  if (method !== 'HEAD') return false
  const below = path.startsWith(prefix) ? path.slice(prefix.length) : path
  return /^(?:\/(?:v1(?:beta)?)?\/?)?$/.test(below)
}
