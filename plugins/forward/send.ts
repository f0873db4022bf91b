import { Readable } from 'node:stream'
import type { FastifyReplyFromHooks } from '@fastify/reply-from'
import { fromTransport } from '../core/errors/foreign.js'
import { gatewayError } from '../core/errors/gateway-error.js'
import { refuse } from '../core/errors/refuse.js'
import { upstreamError } from './upstream-error.js'
import { baseWithoutVersions, withOneVersion } from '../core/url/single-version.js'
import { kContext, seal, type ExchangeContext } from './exchange-context.js'
import { isPage, replyHeaders } from './reply-headers.js'
import { addOwnHeaders, cleanHeaders, unchanged } from './request-headers.js'

/** What every step of sending a model request needs. */
export type MountedCall = Omit<ExchangeContext, 'streamOnly' | 'rewriteHeaders'>

/**
 * Sends a model request by reply-from: its bytes as received, one upstream credential instead of the caller's, and its reply as
 * it comes. `options` are those of the host's mount, whose own functions still run, inside of ours. Each request gets a fresh options
 * object, because reply-from writes into it. Returns false if nothing was sent, because the mount's own transport
 * does not go to the upstream of the group; the caller gets 500 then.
 */
export function send (mounted: MountedCall, source: string, options: FastifyReplyFromHooks): boolean {
  const { llm, reply, destination } = mounted
  const progress: Progress = { isSealed: false, isSent: true }
  const own = ownOptions(mounted, options, progress)
  const dest = withOneVersion(source, llm.url.slice(llm.mountLength))
  if (dest !== source) own.getUpstream = baseWithoutVersions(options.getUpstream)
  try {
    reply.from(dest, own)
  } catch (error) {
    if (!progress.isSealed || llm.times.sentAt > 0) throw error
  }
  // Everything that depends on the parsed body has run by now.
  llm.body.json = undefined
  progress.isSent = destination === null || llm.times.sentAt > 0
  if (!progress.isSent) refuseUnsent(mounted)
  return progress.isSent
}

/** How far the sending of one request has come. */
interface Progress {
  /** The transport has it: errors before that come from the host's own functions. */
  isSealed: boolean
  isSent: boolean
}

/** The options of a mount for a request that is not for a model. */
export function leftAlone (options: FastifyReplyFromHooks): FastifyReplyFromHooks {
  const { rewriteRequestHeaders = (_, headers) => headers } = options
  return Object.assign({}, options, {
    rewriteRequestHeaders: (req, headers) => Object.assign({}, rewriteRequestHeaders(req, headers), { [kContext]: null }),
  } satisfies FastifyReplyFromHooks)
}

function ownOptions (mounted: MountedCall, options: FastifyReplyFromHooks, progress: Progress): FastifyReplyFromHooks {
  const { llm, request, reply, destination } = mounted
  const body = llm.body.outgoing ?? llm.body.bytes
  const onError = options.onError ?? ((_reply, { error }) => refuse(reply, llm.endpoint.family, fromTransport(error.cause ?? error)))
  const sent = body === null ? {} : { body, contentType: request.headers['content-type'] ?? 'application/json' }
  // If the gateway chooses the upstream, it also decides how often to send: reply-from would send a GET that got 503 eleven times at
  // once. A host's own function overrides this.
  const resends = destination === null ? {} : { retryDelay: () => null }
  // Assigned, not spread: V8 clones an object and adds to it in microseconds.
  return Object.assign(resends, options, sent, {
    rewriteRequestHeaders: (req, headers) => {
      const clean = cleanHeaders(headers)
      const host = options.rewriteRequestHeaders?.(req, clean) ?? clean
      const own = addOwnHeaders(destination === null ? Object.assign({}, host) : unchanged(host, headers), llm)
      own[kContext] = {
        gateway: mounted.gateway, llm, request, reply, destination, streamOnly: options.onResponse !== undefined, rewriteHeaders: null,
      }
      if (destination !== null) own[seal] = 'sealed'
      progress.isSealed = destination !== null
      return own
    },
    rewriteHeaders: (headers, req) => {
      const kept = replyHeaders(headers, llm, reply)
      return options.rewriteHeaders?.(kept, req) ?? kept
    },
    onResponse: options.onResponse ?? ((_request, _reply, { stream }) => pass(mounted, stream)),
    onError: (failed, info) => {
      if (progress.isSent) onError(failed, info)
    },
  } satisfies FastifyReplyFromHooks)
}

function refuseUnsent ({ llm, request, reply, destination }: MountedCall): void {
  const what = 'the mount has an undici, http or http2 of its own, or a reply-from that is not known: its requests would not go to the ' +
    'upstream of their group, and are refused'
  request.log.error({ mount: request.routeOptions.url, upstream: destination?.name }, what)
  refuse(reply, llm.endpoint.family, gatewayError('internal_error'))
}

function pass ({ llm, reply }: MountedCall, body: unknown): void {
  if (!isPage(reply.statusCode, { 'content-type': reply.getHeader('content-type') })) {
    reply.send(body)
    return
  }
  if (body instanceof Readable) body.resume()
  refuse(reply, llm.endpoint.family, upstreamError(reply.statusCode))
}
