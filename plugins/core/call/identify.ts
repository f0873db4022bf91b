/**
 * From a raw request to its `ModelCall`, once: by `rewriteUrl` before routing, by the first hook that asks, or carried
 * over from a first pass through the router.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Gateway } from '../gateway.js'
import { takeHostSend } from '../host/host-send.js'
import { ModelCall, modelCallOf } from './model-call.js'
import { beginRequest } from './request-life.js'
import { routeOf } from './route-kind.js'
import { originForm } from '../url/origin-form.js'
import { isCarrier } from '../url/query.js'
import type { UrlRefusal, Resolve } from '../url/resolve.js'
import { queryOf, withoutQuery } from '../url/single-version.js'

const kRead = Symbol('fastify-llm-gateway.read')
const kUrl = Symbol('fastify-llm-gateway.url')
const kGiven = Symbol('fastify-llm-gateway.given')

/** What is read of a request, over HTTP/1 or 2. */
export type RawRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'>

interface Marked extends RawRequest {
  /** Undefined: not looked at. Null: none of ours. */
  [kRead]?: ModelCall | UrlRefusal | null
  /** The URL that was looked at: a host may put another in its place and route again. */
  [kUrl]?: string | undefined
  /** What a URL was before a credential was taken out of it; a function, so that nothing that prints a request prints a secret. */
  [kGiven]?: (url: string | undefined) => string | undefined
  originalUrl?: string
}

/**
 * Reads the URL of a raw request, once: the answer stays with it over a second pass through the router. A credential in
 * the query of a model request is taken out of `raw.url` here, before anybody can log it or send it on, and so is an address before it.
 */
export function readUrl (resolve: Resolve, raw: Marked): ModelCall | UrlRefusal | null {
  const known = raw[kRead]
  if (known !== undefined && (raw.url === raw[kUrl] || raw.url === known?.url)) return known
  const { method = '', headers } = raw
  const url = raw[kGiven]?.(raw.url) ?? String(raw.url)
  const resolution = resolve(method, url, headers)
  const read = resolution?.kind === 'endpoint' ? new ModelCall(resolution) : resolution
  if (resolution?.kind === 'endpoint') raw.url = withoutQuery(originForm(url, headers.host)) + queryOf(resolution.url)
  raw[kRead] = read
  raw[kUrl] = raw.url
  if (read instanceof ModelCall) keepOut(raw, read)
  return read
}

/** The model call that a raw request was read as, null where it is none or nobody has looked yet. */
export function knownRequest (raw: Marked): ModelCall | null {
  const read = raw[kRead]
  return read instanceof ModelCall ? read : null
}

/** Nobody has looked at the URL yet: whoever asks next decides anew, by what its caller wrote. It goes by that of `refused` until then. */
export function forgetUrl (raw: Marked, refused: UrlRefusal | null): void {
  const given = raw.url
  if (refused !== null) raw[kGiven] = (url) => url === refused.url ? given : url
  delete raw[kRead]
}

/** Lets a raw request be routed by another URL than the one that it was read from. */
export function routeBy (raw: Marked, url: string): void {
  raw.url = url
  raw[kUrl] = url
}

/** Keeps a credential in the query out of what a host may log after `rewriteUrl` ran. */
export function keepOut (raw: Marked, { url }: { readonly url: string }): void {
  if (raw.originalUrl !== undefined) raw.originalUrl = url
}

/** Takes credentials out of the parsed query, where a host may log them or hand them on. */
export function dropQueryKeys ({ query }: FastifyRequest): void {
  for (const name in Object(query)) {
    if (isCarrier(name)) Reflect.deleteProperty(Object(query), name)
  }
}

/** What is refused goes by a URL that is safe to log, whoever looks at it. */
export function showRefused (request: FastifyRequest, { url }: UrlRefusal): void {
  routeBy(request.raw, url)
  if (url.includes('?')) dropQueryKeys(request)
  else request.query = {}
}

const kIdentifies = Symbol('fastify-llm-gateway.identifies')

/** True where every request of this scope is identified at its start; from now on that is so. */
export function claimIdentifying (app: FastifyInstance): boolean {
  if (app.hasDecorator(kIdentifies)) return true
  app.decorate(kIdentifies, true)
  return false
}

/** Begins each model request of this scope before any other hook, unless that is done already. */
export function identifyFirst (app: FastifyInstance, gateway: Gateway): void {
  if (claimIdentifying(app)) return
  app.addHook('onRequest', function llmGatewayIdentify (request, reply, done) {
    identify(gateway, request, reply)
    done()
  })
}

/** Why a request that is no model request is none, for whoever answers it; null for a request of the host. */
export function refusalOf (gateway: Gateway, request: FastifyRequest): UrlRefusal | null {
  const read = readUrl(gateway.resolve, request.raw)
  return read instanceof ModelCall ? null : read
}

/**
 * The model request that this request is, begun; a refusal, for whoever answers it; or null for a request of the host.
 * For those who meet a request first; all others read what they found, with `modelCallOf`.
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
