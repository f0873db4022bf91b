import type { FastifyReplyFromHooks } from '@fastify/reply-from'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { checkChoice, OptionError, unguardedMount } from '../core/options.js'
import { gatewayOf, hasGateway } from '../core/gateway.js'
import { identify } from '../core/identify.js'
import { refuseMisdirected } from '../core/refuse-url.js'
import { ModelCall } from '../core/model-call.js'
import { UpstreamDispatcher } from './dispatcher.js'
import { readTransport, type TransportOptions } from './options.js'
import { forwardModel } from './shortcut.js'

export interface ProxyOptions extends TransportOptions {
  /**
   * A path below the mount that has a version segment but is no endpoint we know: `refuse` it (nothing reaches the
   * provider unguarded), or `forward` it as the host did before. Default `refuse`.
   */
  unknown?: 'refuse' | 'forward'
}

/** What a host spreads into its `@fastify/http-proxy` registration (11.5 or later, which has the `handler` option). */
export interface HttpProxyOptions {
  readonly config: { readonly llm: 'proxy' }
  readonly undici: UpstreamDispatcher
  readonly destroyAgent: true
  readonly handler: (request: FastifyRequest, reply: FastifyReply, dest: string, options: FastifyReplyFromHooks) => FastifyReply | undefined
}

/**
 * Makes an existing mount of `@fastify/http-proxy` forward model requests the way the gateway's own routes do:
 * `app.register(httpProxy, { ...proxyOptions(), upstream, prefix: '/v1', rewritePrefix: '/v1' })`. The host's `replyOptions`
 * keep working.
 * A group without an upstream of its own goes where the mount goes, with the credential that the mount sets.
 * Where it has one, the mount's own `preRewrite` has no say in where a request goes, and on a mount that
 * is registered after the gateway it is not called again for a URL that it let pass.
 * Throws `LLM_GATEWAY_OPTION`.
 */
export function proxyOptions ({ unknown = 'refuse', ...transport }: ProxyOptions = {}): HttpProxyOptions {
  // Anything else would let pass what nobody guards.
  checkChoice('proxyOptions.unknown', unknown, ['refuse', 'forward'])
  const dispatcher = new UpstreamDispatcher(readTransport(transport))
  return {
    config: { llm: 'proxy' },
    undici: dispatcher,
    destroyAgent: true,
    handler (request, reply, dest, options) {
      if (!hasGateway(request.server)) throw new OptionError('proxyOptions', 'needs the gateway in the same app')
      const gateway = gatewayOf(request.server)
      gateway.transports.add(dispatcher)
      const read = identify(gateway, request, reply)
      if (read instanceof ModelCall) return forwardModel(dispatcher, { gateway, llm: read, request, reply, upstream: gateway.upstreamFor(read) }, dest, options)
      if (read !== null && (unknown === 'refuse' || read.code !== 'unknown_url')) return refuseMisdirected(request, reply, read)
      const { url = '' } = request.routeOptions
      // A mount that is older than the gateway was not there to be looked at before the start.
      if (read === null && !gateway.guards(url)) throw unguardedMount(url)
      return reply.from(dest, options)
    },
  }
}
