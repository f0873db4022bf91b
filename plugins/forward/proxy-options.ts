import type { FastifyReply, FastifyRequest } from 'fastify'
import { decisionOf } from '../core/door/decision.js'
import { answer } from '../core/door/door.js'
import { gatewayOf } from '../core/gateway.js'
import { identify } from '../core/call/identify.js'
import { checkChoice, OptionError } from '../core/config/options.js'
import { ModelCall } from '../core/call/model-call.js'
import { transports } from './adapted-mounts.js'
import { UpstreamDispatcher } from './dispatcher.js'
import { checkGateway, needsGateway } from './needs-gateway.js'
import { checkTransport, withTransportDefaults, type TransportOptions } from './options.js'
import { leftAlone } from './send.js'
import { sendMounted } from './sender.js'

export interface ProxyOptions extends TransportOptions {
  /**
   * What to do with a path below the mount that has a version segment but is no known endpoint: `refuse` it (nothing reaches the
   * provider unguarded), or `forward` it as the host did before.
   * @defaultValue `refuse`
   */
  unknown?: 'refuse' | 'forward'
}

/** What a host spreads into its `@fastify/http-proxy` registration (11.5 or later, which has the `handler` option). */
export interface HttpProxyOptions {
  readonly config: { readonly llm: 'proxy', readonly llmUnknown?: 'forward' }
  /** The transport. */
  readonly undici: { readonly headersTimeout: number, readonly bodyTimeout: number }
  readonly destroyAgent: true
  readonly handler: (request: FastifyRequest, reply: FastifyReply, dest: string, options: object) => FastifyReply | undefined
  readonly beforeHandler: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void
  readonly wsServerOptions: { readonly verifyClient: () => boolean }
}

/**
 * Makes an existing mount of `@fastify/http-proxy` forward model requests the way the gateway's own routes do:
 * `app.register(httpProxy, { ...proxyOptions(), upstream, prefix: '/v1', rewritePrefix: '/v1' })`. The host's `replyOptions`
 * keep working.
 * A group without an upstream of its own goes where the mount goes, with the credential that the mount sets.
 * Where it has one, the mount has no say in where a request goes.
 * Throws `LLM_GATEWAY_OPTION`.
 */
export function proxyOptions ({ unknown = 'refuse', ...transport }: ProxyOptions = {}): HttpProxyOptions {
  // Any other value would let unguarded requests pass.
  checkChoice('proxyOptions.unknown', unknown, ['refuse', 'forward'])
  checkTransport('proxyOptions', transport)
  const dispatcher = new UpstreamDispatcher(withTransportDefaults(transport))
  const options: HttpProxyOptions = {
    config: { llm: 'proxy', ...unknown === 'forward' && { llmUnknown: unknown } },
    undici: dispatcher,
    destroyAgent: true,
    // A `preHandler` of the host's replaces this; then a missing gateway is reported at the first request.
    beforeHandler: needsGateway(),
    // WebSockets are handled by `core/door/`. This keeps them out of a mount outside of the gateway's scope, which it does not guard.
    wsServerOptions: { verifyClient: () => false },
    handler (request, reply, dest, options) {
      checkGateway(request.server)
      const gateway = gatewayOf(request.server)
      gateway.transports.add(dispatcher)
      const read = identify(gateway, request, reply)
      if (read instanceof ModelCall) {
        sendMounted(dispatcher, { gateway, llm: read, request, reply, destination: gateway.destinationOf(read) }, dest, options)
        // For a reply that is returned, the framework listens to the whole exchange once more.
        return undefined
      }
      // Decided before, unless no plugin saw the request.
      const decision = decisionOf(gateway, request, reply, read)
      return decision === 'leave' ? reply.from(dest, leftAlone(options)) : answer(gateway, decision, request, reply, read)
    },
  }
  transports.set(options.handler, dispatcher)
  return options
}

// Spread without being called, it would silently leave a mount unchanged.
Object.defineProperty(proxyOptions, 'handler', {
  enumerable: true,
  get () { throw new OptionError('proxyOptions', 'is a function: spread what it returns, ...proxyOptions()') },
})
