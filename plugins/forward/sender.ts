import type { FastifyReplyFromHooks } from '@fastify/reply-from'
import { gatewayError } from '../core/errors/gateway-error.js'
import { refuse } from '../core/errors/refuse.js'
import { isLetIn } from '../core/gateway.js'
import { hasOwnUpstream } from '../core/upstream/given-upstream.js'
import type { UpstreamDispatcher } from './dispatcher.js'
import type { ExchangeContext } from './exchange-context.js'
import { relay } from './relay.js'
import { send, type MountedCall } from './send.js'

/** How to send without reply-from what arrives at a mount. */
interface Shortcut {
  readonly dispatcher: UpstreamDispatcher
  readonly rewriteHeaders: ExchangeContext['rewriteHeaders']
}

/** Of mounts whose requests were seen to reach their transport. The key is the scope of the mount. */
const shortcuts = new WeakMap<object, Shortcut>()

/**
 * Sends a model request of a mount by its transport. If the group has an upstream of its own and the host does not change the request,
 * `reply.from` only adds cost. So once a request has shown that the mount's requests reach this transport, later ones go to it directly. A
 * mount's `rewriteHeaders` still applies.
 */
export function sendMounted (dispatcher: UpstreamDispatcher, mounted: MountedCall, dest: string, options: FastifyReplyFromHooks): void {
  const { gateway, llm, request, reply, destination } = mounted
  // Its caller left while a hook of the host's waited.
  if (llm.settled || sendsDirectly(mounted)) return
  if (!isLetIn(gateway, llm) || (destination === null && hasOwnUpstream(llm))) {
    request.log.error(
      { mount: request.routeOptions.url },
      'nobody was asked for a key here, or the group names an upstream that is not there: nothing was sent'
    )
    refuse(reply, llm.endpoint.family, gatewayError('internal_error'))
  } else if (send(mounted, dest, options) && destination !== null && rewritesOnlyReplies(options)) {
    shortcuts.set(request.server, { dispatcher, rewriteHeaders: options.rewriteHeaders ?? null })
  }
}

/** False if nothing was sent, because this request has to go through the mount. */
export function sendsDirectly ({ gateway, llm, request, reply }: Omit<MountedCall, 'destination'>): boolean {
  const shortcut = shortcuts.get(request.server)
  const isRead = llm.body.bytes !== null || llm.endpoint.body === 'none'
  if (shortcut === undefined || !isRead || llm.settled || !isLetIn(gateway, llm)) return false
  const destination = gateway.destinationOf(llm)
  if (destination === null) return false
  const { dispatcher, rewriteHeaders } = shortcut
  relay(dispatcher, { gateway, llm, request, reply, destination, streamOnly: false, rewriteHeaders })
  return true
}

function rewritesOnlyReplies (options: FastifyReplyFromHooks): boolean {
  return Object.keys(options).every((name) => name === 'rewriteHeaders')
}
