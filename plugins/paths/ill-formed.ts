import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Gateway } from '../core/gateway.js'
import { forgetUrl, keepOut, readUrl, routeBy, type RawRequest } from '../core/identify.js'
import { ModelCall } from '../core/model-call.js'
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
 * The router tells the caller of a path that it cannot decode the whole URL, with any credential in it, and asks no hook. So
 * the server sets such paths aside before, where they are ours. Not under `inject`, which does not go through the server.
 */
export function setAsideIllFormed (app: FastifyInstance, gateway: Gateway): void {
  app.server.prependListener('request', (raw: IncomingMessage) => {
    const url = String(raw.url)
    if (!url.includes('%') || isDecodable(withoutQuery(url))) return
    const read = readUrl(gateway.resolve, raw)
    if (read === null || read instanceof ModelCall) forgetUrl(raw)
    else setAside(raw, read)
  })
}
