/**
 * The one decision about whatever arrives below a model mount. It is made again about the path to which a mount sends a request. Nothing is
 * answered here.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isPreflight, isProbe, isSocketUpgrade, methodAsked } from './arrival.js'
import type { Gateway } from '../gateway.js'
import { ModelCall } from '../call/model-call.js'
import { kindOf } from '../call/route-kind.js'
import { readAtStart, readAtVersion, readBeside, socketPath } from '../host/rewritten-send.js'
import type { UrlRefusal } from '../url/refusal.js'
import type { Resolution } from '../url/resolve.js'
import { withoutQuery } from '../url/query.js'
import type { RouteKind } from '../types.js'

/** What serves a request; of the host's other routes, `mount` is a guarded one for model endpoints. */
export type Place = RouteKind | 'mount' | 'none'

interface Arrival {
  readonly what: 'request' | 'upgrade' | 'preflight' | 'probe'
  /** What its URL is: an endpoint; a misspelled one, or one with another method; an unknown path below a version; or none of ours. */
  readonly url: 'endpoint' | 'wrong' | 'unknown' | 'foreign'
  readonly place: Place
  /** The host lets unknown paths pass there. */
  readonly leaves: boolean
  /** The auth plugin is registered. */
  readonly guarded: boolean
}

export type Decision = 'let_in' | 'leave' | 'refuse_url' | 'refuse_upgrade' | 'answer_preflight' | 'answer_probe'

function decide ({ what, url, place, leaves, guarded }: Arrival): Decision {
  const isKnown = url === 'endpoint' || url === 'wrong'
  const isBelowMount = place === 'adapted' || (url === 'unknown' && (place === 'own' || place === 'mount'))
  const isNobodys = url === 'unknown' && place === 'none' && !leaves
  if (what === 'preflight') return isBelowMount || isNobodys || (isKnown && place !== 'host') ? 'answer_preflight' : 'leave'
  if (what === 'upgrade') return isKnown || isBelowMount || isNobodys ? 'refuse_upgrade' : 'leave'
  if (url === 'endpoint') return 'let_in'
  if (url === 'wrong') return 'refuse_url'
  if (what === 'probe' && (place === 'none' || (place === 'adapted' && !leaves))) return 'answer_probe'
  if (place === 'host' || leaves) return 'leave'
  if (url === 'foreign') return place === 'adapted' && guarded ? 'refuse_url' : 'leave'
  return 'refuse_url'
}

/** `read`: what `readUrl` made of the request's URL. */
export function decisionOf (
  gateway: Gateway, request: FastifyRequest, reply: FastifyReply, read: ModelCall | UrlRefusal | null
): Decision {
  const place = placeOf(gateway, request)
  const found = readArrival(gateway, request, read) ?? readNobodys(request, place)
  const isSocket = found === null && (place === 'mount' || (place === 'host' && gateway.guarded)) && isSocketUpgrade(request)
  const path = isSocket ? socketPath(request, reply) : null
  return path === null ? decisionAbout(gateway, request, found, place) : sentDecision(gateway, request, place, path)
}

/** About a request that is sent to `path`, which may differ from the path that was asked for. */
export function sentDecision (gateway: Gateway, request: FastifyRequest, sender: Place, path: string): Decision {
  if (sender !== 'host') return decisionAbout(gateway, request, readAtVersion(path, request), sender)
  return decisionAbout(gateway, request, isBesideMounts(gateway, request) ? readAtStart(path, gateway.prefix, request) : null, 'mount')
}

/** About a request that is sent to the path that was asked for. */
export function unchangedDecision (
  gateway: Gateway, request: FastifyRequest, read: ModelCall | UrlRefusal | null, sender: Place, path: string
): Decision {
  // Loosely first: an unknown path may be an endpoint to a provider that tells no cases apart.
  const found = gateway.resolveLoosely(methodAsked(request), String(request.raw.url), {}) ?? readArrival(gateway, request, read)
  return decisionAbout(gateway, request, found ?? readBeside(path), sender)
}

/** True for a plain route of the host beside mounts of model endpoints: it gets what those leave, and may lead to the provider, too. */
function isBesideMounts ({ mounts, prefix, resolveLoosely }: Gateway, request: FastifyRequest): boolean {
  return mounts.guards(String(request.routeOptions.url)) &&
    (prefix === '' || resolveLoosely(methodAsked(request), String(request.raw.url), {}) !== null)
}

/** What a request asks for; for a preflight, what the request to come asks for. */
function readArrival (gateway: Gateway, request: FastifyRequest, read: ModelCall | UrlRefusal | null): ModelCall | Resolution {
  const { method, headers, raw } = request
  return isPreflight(method, headers) ? gateway.resolve(methodAsked(request), String(raw.url), {}) : read
}

/** A WebSocket whose path has no version, at an address that no route serves. */
function readNobodys (request: FastifyRequest, place: Place): Resolution {
  return place === 'none' && isSocketUpgrade(request) ? readBeside(withoutQuery(String(request.raw.url))) : null
}

function decisionAbout (gateway: Gateway, request: FastifyRequest, found: ModelCall | Resolution, place: Place): Decision {
  const leaves = leavesUnknown(gateway, request, place)
  return decide({ what: whatOf(gateway, request), url: urlKind(found, leaves), place, leaves, guarded: gateway.guarded })
}

function whatOf ({ prefix }: Gateway, request: FastifyRequest): Arrival['what'] {
  const { method, headers, raw } = request
  if (isPreflight(method, headers)) return 'preflight'
  if (isSocketUpgrade(request)) return 'upgrade'
  return isProbe(method, withoutQuery(String(raw.url)), prefix) ? 'probe' : 'request'
}

/** An action that no endpoint has is one of the provider's, so a route that was not told to let unknown paths pass sends none. */
function urlKind (found: ModelCall | Resolution, leaves: boolean): Arrival['url'] {
  if (found === null) return 'foreign'
  if (found instanceof ModelCall || found.kind === 'endpoint') return 'endpoint'
  return found.code === 'unknown_url' || (leaves && found.code === 'unknown_action') ? 'unknown' : 'wrong'
}

export function placeOf (gateway: Gateway, request: FastifyRequest): Place {
  if (request.is404) return 'none'
  const { url, config } = request.routeOptions
  const kind = kindOf(config)
  return kind === 'host' && gateway.guarded && gateway.mounts.has(String(url)) ? 'mount' : kind
}

function leavesUnknown ({ unknown }: Gateway, request: FastifyRequest, place: Place): boolean {
  if (place === 'adapted') return request.routeOptions.config.llmUnknown === 'forward'
  if (place === 'none') return unknown.nowhere === 'leave'
  return place === 'mount' && unknown.mounts === 'leave'
}
