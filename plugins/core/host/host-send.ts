/**
 * The one seam to a host's mount without `proxyOptions()`: what its `reply.from` sends of a model request. The mount decides
 * where it goes and with what headers; everything that the gateway changes is changed here.
 */
import type {} from '@fastify/reply-from'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { dropConnection } from '../door/carriers.js'
import { gatewayError } from '../errors/gateway-error.js'
import { refuse } from '../errors/refuse.js'
import { isLetIn, type Gateway } from '../gateway.js'
import { hasOwnUpstream } from '../upstream/given-upstream.js'
import type { ModelCall } from '../call/model-call.js'
import { sendTraced } from '../telemetry/outgoing-trace.js'
import { baseWithoutVersions, withOneVersion } from '../url/single-version.js'

/**
 * Wraps the `reply.from` of one request:
 *
 * - A request without a checked key is refused, and so is one whose group has an upstream of its own: it would go elsewhere. So is one
 *   that auth has not admitted yet, because it still carries the caller's key.
 * - No version is doubled in its path. Only the mount knows where it sends a request, at the moment when it does.
 * - Its bytes are sent as they were received, or as `llm.body.outgoing` says, if they are known: a body that a host's parser has read
 *   would be serialized again, to other bytes. A body that the host itself gives to `reply.from` is sent as it is.
 * - It carries our trace instead of the caller's.
 */
export function takeHostSend (gateway: Gateway, llm: ModelCall, request: FastifyRequest, reply: FastifyReply): void {
  if (!('from' in reply)) return
  const { from } = reply
  reply.from = (source, options) => {
    // Its caller left while a hook of the host's waited. Nobody wants the reply, and its place under the limits is free already.
    if (llm.settled) return reply
    const reason = reasonToKeep(gateway, llm)
    if (reason !== null) {
      request.log.error({ mount: request.routeOptions.url }, reason)
      return refuse(reply, llm.endpoint.family, gatewayError('internal_error'))
    }
    dropConnection(request.raw.headers)
    llm.body.json = undefined
    const body = llm.body.outgoing ?? llm.body.bytes
    const isOurs = body !== null && options?.body === undefined
    const dest = source === undefined ? undefined : withOneVersion(source, llm.url.slice(llm.mountLength))
    const own = {
      ...options,
      ...isOurs && { body, contentType: request.headers['content-type'] ?? 'application/json' },
      ...dest !== source && { getUpstream: baseWithoutVersions(options?.getUpstream) },
    }
    return sendTraced(llm, request.raw.headers, () => from.call(reply, dest, own))
  }
}

/** Why a request must not be sent by its mount, in words for operators; null if it may be. */
function reasonToKeep (gateway: Gateway, llm: ModelCall): string | null {
  if (!isLetIn(gateway, llm)) return 'this route is outside of the scope that asks for keys: nothing was sent'
  if (gateway.guarded && !llm.auth.admitted) {
    return 'an error handler, or a hook before preHandler, would send it before its model and limits were checked: nothing was sent'
  }
  if (!hasOwnUpstream(llm)) return null
  return 'the group has an upstream of its own, and a mount without proxyOptions() would send it elsewhere: nothing was sent'
}
