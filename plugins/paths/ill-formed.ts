import type { FastifyInstance } from 'fastify'
import { furtherServers } from '../core/door/further-servers.js'
import type { Gateway } from '../core/gateway.js'
import { keepOut, readUrl, routeBy, type RawRequest } from '../core/call/identify.js'
import type { UrlRefusal } from '../core/url/resolve.js'
import { isDecodable } from '../core/url/segments.js'
import { withoutQuery } from '../core/url/single-version.js'

/**
 * The router must not answer an ill-formed path in its own words: whatever it makes of the one that is put in its place, a hook refuses it.
 */
export function setAside (raw: RawRequest, refused: UrlRefusal): string {
  keepOut(raw, refused)
  const url = `/${encodeURIComponent(refused.url)}`
  routeBy(raw, url)
  return url
}

/**
 * The router tells the caller of a path that it cannot decode, or of an address that is none, the whole URL, with any credential
 * in it, and asks no hook. So the server sets such ones aside before, where they are ours. Not under `inject`, which does not go
 * through the server.
 */
export function setAsideIllFormed (app: FastifyInstance, gateway: Gateway): void {
  gateway.setAside = (raw) => {
    const url = String(raw.url)
    if (url[0] === '/' && isReadable(url)) return
    const found = gateway.resolve(String(raw.method), url, raw.headers)
    if (found?.kind !== 'refused' || (found.code !== 'ambiguous_path' && isReadable(url))) return
    readUrl(gateway.resolve, raw)
    setAside(raw, found)
  }
  app.server.prependListener('request', gateway.setAside)
  app.addHook('onListen', async () => {
    for (const server of furtherServers(app)) server.prependListener('request', gateway.setAside)
  })
}

function isReadable (url: string): boolean {
  return !url.includes('%') || isDecodable(withoutQuery(url))
}
