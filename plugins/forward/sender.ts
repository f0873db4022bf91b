import type { FastifyReplyFromHooks } from '@fastify/reply-from'
import { gatewayError } from '../core/errors/gateway-error.js'
import { refuse } from '../core/errors/refuse.js'
import { isLetIn } from '../core/gateway.js'
import { hasOwnUpstream } from '../core/upstream/given-upstream.js'
import type { UpstreamDispatcher } from './dispatcher.js'
import { relay } from './relay.js'
import { send, type MountedCall } from './send.js'

/** Returns nothing: for a reply that is returned, the framework listens to the whole exchange once more. */
type Sender = (mounted: MountedCall, dest: string, options: FastifyReplyFromHooks) => undefined

/**
 * Sends the model requests of the mounts that share a transport. If the group has an upstream of its own and the host
 * does not change the request, `reply.from` only adds cost. So once a request has shown that the mount's requests reach this
 * transport, later ones go to it directly. A mount's `rewriteHeaders` still applies.
 */
export function createSender (dispatcher: UpstreamDispatcher): Sender {
  const proven = new WeakSet<object>()
  return function sendModel (mounted, dest, options) {
    const { gateway, llm, request, reply, destination } = mounted
    // Its caller left while a hook of the host's waited.
    if (llm.settled) return undefined
    const isRead = llm.body.bytes !== null || llm.endpoint.body === 'none'
    if (!isLetIn(gateway, llm) || (destination === null && hasOwnUpstream(llm))) {
      request.log.error(
        { mount: request.routeOptions.url },
        'nobody was asked for a key here, or the group names an upstream that is not there: nothing was sent'
      )
      refuse(request, reply, llm.endpoint.family, gatewayError('internal_error'))
    } else if (destination !== null && isRead && proven.has(request.server) && rewritesOnlyReplies(options)) {
      relay(dispatcher, destination, {
        gateway, llm, request, reply, destination, streamOnly: false, rewriteHeaders: options.rewriteHeaders ?? null,
      })
    } else if (send(mounted, dest, options) && destination !== null) {
      proven.add(request.server)
    }
    return undefined
  }
}

function rewritesOnlyReplies (options: FastifyReplyFromHooks): boolean {
  return Object.keys(options).every((name) => name === 'rewriteHeaders')
}
