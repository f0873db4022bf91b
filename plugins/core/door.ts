/**
 * The one decision about whatever arrives below a model mount, by any method, upgrade or spelling, before a byte of it goes
 * anywhere: let in with a key, answered here, or left to the host. Every plugin that meets a request first, and every mount
 * that is about to send one, asks here; none decides by itself.
 */
import type {} from '@fastify/reply-from'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { familyOf, families, sockets } from '../protocols/index.js'
import { isPreflight, isProbe, isSocketUpgrade, methodAsked } from './arrival.js'
import { gatewayError } from './errors/gateway-error.js'
import { refuse } from './errors/refuse.js'
import type { Gateway } from './gateway.js'
import { dropQueryKeys, identify, readUrl, routeBy } from './identify.js'
import { ModelCall, modelCallOf } from './model-call.js'
import { unguardedMount } from './options.js'
import { refuseUrl } from './refuse-url.js'
import { beginRequest } from './request-life.js'
import { readAtStart, readAtVersion, readBeside, socketPath } from './rewritten-send.js'
import { splitKeys } from './url/query.js'
import type { UrlRefusal, Resolution } from './url/resolve.js'
import { leaveUntaken } from './untaken-upgrade.js'
import { withoutQuery } from './url/single-version.js'

/**
 * What serves a request: our routes, a mount that spreads `proxyOptions()`, a host's mount of model endpoints that is guarded, any other
 * route, or none.
 */
export type Place = 'own' | 'adapted' | 'mount' | 'host' | 'none'

export interface Arrival {
  readonly what: 'request' | 'upgrade' | 'preflight' | 'probe'
  /** What its URL is: an endpoint, one that is misspelled or of another method, another path below a version, or none of ours. */
  readonly url: 'endpoint' | 'wrong' | 'unknown' | 'foreign'
  readonly place: Place
  /** The host has what nobody knows pass there. */
  readonly leaves: boolean
  /** Somebody asks for keys. */
  readonly guarded: boolean
}

export type Decision = 'let_in' | 'leave' | 'refuse_url' | 'refuse_upgrade' | 'answer_preflight' | 'answer_probe'

export function decide ({ what, url, place, leaves, guarded }: Arrival): Decision {
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

/** Asks a caller for its key: calls `passed`, or has answered. */
export type AskKey = (llm: ModelCall, request: FastifyRequest, reply: FastifyReply, passed: () => void) => void

/** Who meets a request first: `ask` is the guard's, null for a plugin that knows no keys. */
export function meet (
  gateway: Gateway, request: FastifyRequest, reply: FastifyReply, ask: AskKey | null, done: (error?: Error) => void
): void {
  const read = readUrl(gateway.resolve, request.raw)
  // The hot path: an endpoint, asked for as clients do.
  const decision = read instanceof ModelCall && request.headers.upgrade === undefined ? 'let_in' : decisionOf(gateway, request, reply, read)
  if (decision === 'leave') {
    if (leaveUntaken(request, reply)) return
    if (gateway.guarded && 'from' in reply) watchSend(gateway, request, reply, read)
    done()
  } else if (decision === 'let_in') {
    letIn(gateway, request, reply, ask, done)
  } else if (decision === 'refuse_upgrade') {
    meetUpgrade(gateway, request, reply, read, ask, done)
  } else if (decision === 'refuse_url' && read === null && !gateway.mounts.guards(String(request.routeOptions.url))) {
    // A mount that is older than the gateway was not there to be looked at before the start.
    done(unguardedMount(String(request.routeOptions.url)))
  } else {
    answer(gateway, decision, request, reply, read)
  }
}

/**
 * Decides once more where a request that was left to the host is sent: its mount may rewrite the path, and so may a hook that came later.
 * A host may also send what it has no route for, in its not-found handler: one that does is a mount like any other.
 */
function watchSend (gateway: Gateway, request: FastifyRequest, reply: FastifyReply, read: ModelCall | UrlRefusal | null): void {
  const { from } = reply
  const place = placeOf(gateway, request)
  const asked = withoutQuery(request.url)
  reply.from = (source, options) => {
    const decision = sendDecision(withoutQuery(source || request.url))
    return decision === 'leave' ? from.call(reply, source, options) : answer(gateway, decision, request, reply, read)
  }
  if (isSocketUpgrade(request)) watchSocket(gateway, request, reply, place)

  function sendDecision (path: string): Decision {
    const sender = request.is404 ? 'mount' : place
    // A hook between two of the plugins may have made a model request of it, that had its key asked for.
    if (modelCallOf(request)?.auth.passed === true) return 'leave'
    if (sender === 'host' || path !== asked) return sentDecision(gateway, request, sender, path)
    const found = readArrival(gateway, request, read) ?? gateway.resolveLoosely(methodAsked(request), String(request.raw.url), {})
    return decisionAbout(gateway, request, found ?? readBeside(path), sender)
  }
}

/** What http-proxy does last before a handshake. */
function watchSocket (gateway: Gateway, request: FastifyRequest, reply: FastifyReply, place: Place): void {
  const { hijack } = reply
  reply.hijack = () => {
    const path = socketPath(request, reply)
    if (path !== null && sentDecision(gateway, request, place, path) !== 'leave') throw gatewayError('upgrade_required')
    return hijack.call(reply)
  }
}

function sentDecision (gateway: Gateway, request: FastifyRequest, sender: Place, path: string): Decision {
  if (sender !== 'host') return decisionAbout(gateway, request, readAtVersion(path, request), sender)
  return decisionAbout(gateway, request, isBesideMounts(gateway, request) ? readAtStart(path, gateway.prefix, request) : null, 'mount')
}

/** A site of the host's that has what the mounts of model endpoints beside it leave: it may lead to the provider, too. */
function isBesideMounts ({ mounts, prefix, resolveLoosely }: Gateway, request: FastifyRequest): boolean {
  return mounts.guards(String(request.routeOptions.url)) &&
    (prefix === '' || resolveLoosely(methodAsked(request), String(request.raw.url), {}) !== null)
}

export function decisionOf (
  gateway: Gateway, request: FastifyRequest, reply: FastifyReply, read: ModelCall | UrlRefusal | null
): Decision {
  const place = placeOf(gateway, request)
  const found = readArrival(gateway, request, read)
  const isSocket = found === null && (place === 'mount' || (place === 'host' && gateway.guarded)) && isSocketUpgrade(request)
  const path = isSocket ? socketPath(request, reply) : null
  return path === null ? decisionAbout(gateway, request, found, place) : sentDecision(gateway, request, place, path)
}

/** What a request asks for; a preflight, what will be asked for. */
function readArrival (gateway: Gateway, request: FastifyRequest, read: ModelCall | UrlRefusal | null): ModelCall | Resolution {
  const { method, headers, raw } = request
  return isPreflight(method, headers) ? gateway.resolve(methodAsked(request), String(raw.url), {}) : read
}

function decisionAbout (gateway: Gateway, request: FastifyRequest, found: ModelCall | Resolution, place: Place): Decision {
  return decide({
    what: whatOf(request),
    url: urlKind(found),
    place,
    leaves: leaves(gateway, request, place),
    guarded: gateway.guarded,
  })
}

function whatOf (request: FastifyRequest): Arrival['what'] {
  const { method, headers, raw } = request
  if (isPreflight(method, headers)) return 'preflight'
  if (isSocketUpgrade(request)) return 'upgrade'
  return isProbe(method, withoutQuery(String(raw.url))) ? 'probe' : 'request'
}

function urlKind (found: ModelCall | Resolution): Arrival['url'] {
  if (found === null) return 'foreign'
  if (found instanceof ModelCall || found.kind === 'endpoint') return 'endpoint'
  return found.code === 'unknown_url' ? 'unknown' : 'wrong'
}

function placeOf (gateway: Gateway, request: FastifyRequest): Place {
  if (request.is404) return 'none'
  const { url, config } = request.routeOptions
  if (config.llm === 'own') return 'own'
  if (config.llm === 'proxy') return 'adapted'
  return gateway.guarded && gateway.mounts.has(String(url)) ? 'mount' : 'host'
}

function leaves ({ unknown }: Gateway, request: FastifyRequest, place: Place): boolean {
  if (place === 'adapted') return request.routeOptions.config.llmUnknown === 'forward'
  if (place === 'none') return unknown.nowhere === 'leave'
  return place === 'mount' && unknown.mounts === 'leave'
}

function letIn (gateway: Gateway, request: FastifyRequest, reply: FastifyReply, ask: AskKey | null, done: () => void): void {
  const llm = identify(gateway, request, reply)
  if (ask === null || !(llm instanceof ModelCall) || llm.auth.passed) done()
  else ask(llm, request, reply, done)
}

/** Everything that `decide` has answered here but upgrades, which need a key. */
export function answer (
  gateway: Gateway, decision: Decision, request: FastifyRequest, reply: FastifyReply, read: ModelCall | UrlRefusal | null
): FastifyReply {
  if (decision === 'answer_preflight') return reply.code(204).send()
  if (decision === 'answer_probe') return reply.code(200).send()
  return refuseUrl(gateway, request, reply, read === null || read instanceof ModelCall ? unknownUrl(request) : read)
}

function unknownUrl ({ headers, raw }: FastifyRequest): UrlRefusal {
  const url = String(raw.url)
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const { query, keys } = splitKeys(url.slice(path.length))
  const family = families[familyOf({ headers, query: url.slice(path.length), versions: [] })]
  return { kind: 'refused', code: 'unknown_url', family, url: path + query, keys: () => keys }
}

function meetUpgrade (
  gateway: Gateway, request: FastifyRequest, reply: FastifyReply, read: ModelCall | UrlRefusal | null, ask: AskKey | null, done: () => void
): void {
  // The guard meets it later.
  if (ask === null && gateway.guarded) {
    done()
    return
  }
  const llm = read instanceof ModelCall ? read : socketCall(request, read ?? unknownUrl(request))
  beginRequest(gateway, request, reply, llm)
  const refuseUpgrade = (): void => {
    refuse(request, reply, llm.endpoint.family, gatewayError('upgrade_required', {}, { headers: { upgrade: 'HTTP/1.1' } }))
  }
  if (ask === null) refuseUpgrade()
  else ask(llm, request, reply, refuseUpgrade)
}

/** An upgrade is counted and logged like any request, whatever its path. */
function socketCall (request: FastifyRequest, { family, url, keys }: UrlRefusal): ModelCall {
  routeBy(request.raw, url)
  dropQueryKeys(request)
  return new ModelCall({
    kind: 'endpoint', endpoint: sockets[family.name], url, mountLength: 0, model: null, keys: keys?.() ?? null, repair: null,
  })
}
