import type { FastifyInstance } from 'fastify'
import { onFurtherServers } from '../core/door/further-servers.js'
import type { Gateway } from '../core/gateway.js'
import { keepOut, readUrl, routeBy, type RawRequest } from '../core/call/identify.js'
import type { UrlRefusal } from '../core/url/refusal.js'
import { isDecodable } from '../core/url/segments.js'
import { withoutQuery } from '../core/url/query.js'

/**
 * The router must not answer an ill-formed path with its own message: another path is put in its place, and a hook refuses the request
 * wherever that leads.
 */
export function setAside (raw: RawRequest, refused: UrlRefusal): string {
  keepOut(raw, refused)
  const url = `/${encodeURIComponent(refused.url)}`
  routeBy(raw, url)
  return url
}

/**
 * For a path that it cannot decode, or a malformed address, the router answers with the whole URL, including any credential in it, and
 * calls no hook. So the server sets such requests aside before, if they are ours. Not under `inject`, which does not use the server.
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
  onFurtherServers(app, (server) => server.prependListener('request', gateway.setAside))
}

function isReadable (url: string): boolean {
  return !url.includes('%') || isDecodable(withoutQuery(url))
}
