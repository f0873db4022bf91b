/**
 * Whatever arrives below a model mount, by any method, upgrade or spelling, passes here before a byte of it goes anywhere: it is let in
 * with a key, answered, or left to the host, as `decision.ts` says. Every plugin that sees a request first, and every mount that is about
 * to send one, asks here; none decides by itself.
 */
import type {} from '@fastify/reply-from'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sockets } from '../../protocols/index.js'
import { isSocketUpgrade } from './arrival.js'
import { decisionOf, placeOf, sentDecision, unchangedDecision, type Decision, type Place } from './decision.js'
import { gatewayError } from '../errors/gateway-error.js'
import { refuse } from '../errors/refuse.js'
import type { Gateway } from '../gateway.js'
import { dropQueryKeys, identify, readUrl, showRefused } from '../call/identify.js'
import { ModelCall, modelCallOf } from '../call/model-call.js'
import { unguardedMount } from '../config/options.js'
import { refuseUrl, unknownUrl } from './refuse-url.js'
import { beginRequest } from '../call/request-life.js'
import { socketPath } from '../host/rewritten-send.js'
import { withoutQuery } from '../url/query.js'
import type { UrlRefusal } from '../url/refusal.js'
import { endUpgrade, leaveUntaken } from './untaken-upgrade.js'

/** Checks the caller's key: calls `passed`, or answers the request. */
type AskKey = (llm: ModelCall, request: FastifyRequest, reply: FastifyReply, passed: () => void) => void

/** Handles a request that nobody has seen yet. `ask` checks keys; null for a plugin that knows no keys. */
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
 * Decides again when a request that was left to the host is sent: its mount may rewrite the path, and so may a later hook. A host's
 * not-found handler that sends requests counts as a mount.
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
    // A hook between two of the plugins may have turned it into a model request, whose key was then checked.
    if (modelCallOf(request)?.auth.passed === true) return 'leave'
    if (sender === 'host' || path !== asked) return sentDecision(gateway, request, sender, path)
    return unchangedDecision(gateway, request, read, sender, path)
  }
}

/** `reply.hijack` is the last thing that http-proxy calls before a handshake. */
function watchSocket (gateway: Gateway, request: FastifyRequest, reply: FastifyReply, place: Place): void {
  const { hijack } = reply
  reply.hijack = () => {
    const path = socketPath(request, reply)
    if (path !== null && sentDecision(gateway, request, place, path) !== 'leave') throw gatewayError('upgrade_required')
    return hijack.call(reply)
  }
}

function letIn (gateway: Gateway, request: FastifyRequest, reply: FastifyReply, ask: AskKey | null, done: () => void): void {
  const llm = identify(gateway, request, reply)
  if (ask === null || !(llm instanceof ModelCall) || llm.auth.passed) done()
  else ask(llm, request, reply, done)
}

/** Answers what `decide` says is answered here, except upgrades, which need a key first. */
export function answer (
  gateway: Gateway, decision: Decision, request: FastifyRequest, reply: FastifyReply, read: ModelCall | UrlRefusal | null
): FastifyReply {
  endUpgrade(request, reply)
  if (decision === 'answer_preflight') return reply.code(204).send()
  if (decision === 'answer_probe') return reply.code(200).send()
  return refuseUrl(gateway, request, reply, read === null || read instanceof ModelCall ? unknownUrl(request.raw) : read)
}

function meetUpgrade (
  gateway: Gateway, request: FastifyRequest, reply: FastifyReply, read: ModelCall | UrlRefusal | null, ask: AskKey | null, done: () => void
): void {
  dropQueryKeys(request)
  endUpgrade(request, reply)
  // The auth plugin handles it later.
  if (ask === null && gateway.guarded) {
    done()
    return
  }
  const llm = read instanceof ModelCall ? read : socketCall(request, read ?? unknownUrl(request.raw))
  beginRequest(gateway, request, reply, llm)
  const refuseUpgrade = (): void => {
    refuse(reply, llm.endpoint.family, gatewayError('upgrade_required', {}, { headers: { upgrade: 'HTTP/1.1' } }))
  }
  if (ask === null) refuseUpgrade()
  else ask(llm, request, reply, refuseUpgrade)
}

/** An upgrade is counted and logged like any request, whatever its path. */
function socketCall (request: FastifyRequest, refusal: UrlRefusal): ModelCall {
  const { family, url, keys } = refusal
  showRefused(request, refusal)
  return new ModelCall({
    kind: 'endpoint', endpoint: sockets[family.name], url, mountLength: 0, model: null, keys: keys?.() ?? null, repair: null,
  })
}
