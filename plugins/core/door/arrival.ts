/** What of a request the door decides by, told apart here and nowhere else. */
import type { FastifyRequest } from 'fastify'

type Upgradable = Pick<FastifyRequest, 'headers' | 'raw'>

/** Any other upgrade, such as the `h2c` that some HTTP libraries offer with each first request, is one to ignore (RFC 9110 7.8). */
export function isSocketUpgrade ({ headers: { upgrade, connection }, raw }: Upgradable): boolean {
  return upgrade !== undefined && /websocket/i.test(upgrade) &&
    (isTakenAsUpgrade(raw) || /(?:^|[\s,])upgrade(?:$|[\s,])/i.test(String(connection)))
}

/** True where Node has handed the connection to whoever listens for upgrades. It has read more headers than it tells of: 2,000 at most. */
export function isTakenAsUpgrade (raw: object): boolean {
  return Reflect.get(raw, 'upgrade') === true
}

/**
 * A browser's question whether it may ask: without a body, and what it carries is not for anybody
 * (https://fetch.spec.whatwg.org/#cors-preflight-fetch).
 */
export function isPreflight (method: string, headers: Readonly<Record<string, unknown>>): boolean {
  return method === 'OPTIONS' && headers['origin'] !== undefined && headers['access-control-request-method'] !== undefined &&
    headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0'
}

/** The method of a request; of a preflight, that which will be asked with. */
export function methodAsked ({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): string {
  return isPreflight(method, headers) ? String(headers['access-control-request-method']) : method
}

/** `HEAD` of a base address, at the root or below the gateway's own `prefix`, is how some clients ask whether anybody is there. */
export function isProbe (method: string, path: string, prefix: string): boolean {
  if (method !== 'HEAD') return false
  const below = path.startsWith(prefix) ? path.slice(prefix.length) : path
  return /^(?:\/(?:v1(?:beta)?)?\/?)?$/.test(below)
}
