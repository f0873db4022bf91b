/**
 * From a raw request to its `ModelCall`, once: by `rewriteUrl` before routing, or by the first hook that asks. A second pass
 * through the router finds what the first one made.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Gateway } from '../gateway.js'
import { takeHostSend } from '../host/host-send.js'
import { ModelCall, modelCallOf } from './model-call.js'
import { beginRequest } from './request-life.js'
import { routeOf } from './route-kind.js'
import { originForm } from '../url/origin-form.js'
import { isCarrier, queryOf, withoutQuery } from '../url/query.js'
import type { UrlRefusal } from '../url/refusal.js'
import type { Resolve } from '../url/resolve.js'

const kRead = Symbol('fastify-llm-gateway.read')
const kUrl = Symbol('fastify-llm-gateway.url')
const kGiven = Symbol('fastify-llm-gateway.given')

/** The fields that are read of a request, over HTTP/1 or 2. */
export type RawRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'>

interface Marked extends RawRequest {
  /** Undefined: not read yet. Null: none of ours. */
  [kRead]?: ModelCall | UrlRefusal | null
  /** The URL that was read: a host may replace it and route again. */
  [kUrl]?: string | undefined
  /** What the URL was before a credential was removed from it; a function, so that printing a request does not print a secret. */
  [kGiven]?: (url: string | undefined) => string | undefined
  originalUrl?: string
}

/**
 * Reads the URL of a raw request, once: the answer stays with it over a second pass through the router. A credential in
 * the query of a model request is removed from `raw.url` here, before anybody can log it or send it on, and so is a host before the path.
 */
export function readUrl (resolve: Resolve, raw: Marked): ModelCall | UrlRefusal | null {
  const known = raw[kRead]
  if (known !== undefined && (raw.url === raw[kUrl] || raw.url === known?.url)) return known
  const { method = '', headers } = raw
  const url = givenUrl(raw)
  const resolution = resolve(method, url, headers)
  const read = resolution?.kind === 'endpoint' ? new ModelCall(resolution) : resolution
  if (resolution?.kind === 'endpoint') raw.url = withoutQuery(originForm(url, headers.host)) + queryOf(resolution.url)
  raw[kRead] = read
  raw[kUrl] = raw.url
  if (read instanceof ModelCall) keepOut(raw, read)
  return read
}

/** The URL as it was before `forgetUrl`. */
export function givenUrl (raw: Marked): string {
  return raw[kGiven]?.(raw.url) ?? String(raw.url)
}

/** The model call of a raw request; null if it is none, or has not been read yet. */
export function knownRequest (raw: Marked): ModelCall | null {
  const read = raw[kRead]
  return read instanceof ModelCall ? read : null
}

/**
 * Makes the next reader decide again, by what the caller wrote. Until then the URL may be replaced by that of `refused`, which is safe to
 * log.
 */
export function forgetUrl (raw: Marked, refused: UrlRefusal | null): void {
  const given = raw.url
  if (refused !== null) raw[kGiven] = (url) => url === refused.url ? given : url
  delete raw[kRead]
}

/** Routes a raw request by another URL than the one that was read. */
export function routeBy (raw: Marked, url: string): void {
  raw.url = url
  raw[kUrl] = url
}

/** Keeps a credential in the query out of what a host may log after `rewriteUrl` ran. */
export function keepOut (raw: Marked, { url }: { readonly url: string }): void {
  if (raw.originalUrl !== undefined) raw.originalUrl = url
}

/** Removes credentials from the parsed query, which a host may log or hand on. */
export function dropQueryKeys ({ query }: FastifyRequest): void {
  for (const name in Object(query)) {
    if (isCarrier(name)) Reflect.deleteProperty(Object(query), name)
  }
}

/** Replaces the URL of a refused request by one that is safe to log. */
export function showRefused (request: FastifyRequest, { url }: UrlRefusal): void {
  routeBy(request.raw, url)
  if (url.includes('?')) dropQueryKeys(request)
  else request.query = {}
}

const kIdentifies = Symbol('fastify-llm-gateway.identifies')

/** Claims the identifying of requests in this scope. True if another plugin has claimed it already. */
export function claimIdentifying (app: FastifyInstance): boolean {
  if (app.hasDecorator(kIdentifies)) return true
  app.decorate(kIdentifies, true)
  return false
}

/** Begins each model request of this scope before any later hook, unless another plugin does so already. */
export function identifyFirst (app: FastifyInstance, gateway: Gateway): void {
  if (claimIdentifying(app)) return
  app.addHook('onRequest', function llmGatewayIdentify (request, reply, done) {
    identify(gateway, request, reply)
    done()
  })
}

/** Why a request below our paths is no model request, for whoever answers it; null for a request of the host. */
export function refusalOf (gateway: Gateway, request: FastifyRequest): UrlRefusal | null {
  const read = readUrl(gateway.resolve, request.raw)
  return read instanceof ModelCall ? null : read
}

/**
 * The model call of this request, begun; a refusal, for whoever answers it; or null for a request of the host.
 * For plugins that see a request first; all others use `modelCallOf`.
 */
export function identify (gateway: Gateway, request: FastifyRequest, reply: FastifyReply): ModelCall | UrlRefusal | null {
  const known = modelCallOf(request)
  if (known !== null) return known
  const read = readUrl(gateway.resolve, request.raw)
  if (!(read instanceof ModelCall)) return read
  beginRequest(gateway, request, reply, read)
  dropQueryKeys(request)
  if (routeOf(read, request) === 'host') takeHostSend(gateway, read, request, reply)
  return read
}
