import type { FastifyInstance, FastifyPluginOptions, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { decisionOf } from '../core/door/decision.js'
import { answer } from '../core/door/door.js'
import { gatewayOf, type Gateway } from '../core/gateway.js'
import { identify } from '../core/call/identify.js'
import { checkChoice, OptionError } from '../core/config/options.js'
import { ModelCall, modelCallOf } from '../core/call/model-call.js'
import { UpstreamDispatcher } from './dispatcher.js'
import { mountProblem, type MountProblem, type MountAddress } from './mount-address.js'
import { checkGateway, needsGateway } from './needs-gateway.js'
import { checkTransport, withTransportDefaults, type TransportOptions } from './options.js'
import { leftAlone } from './send.js'
import { sendMounted, sendsDirectly } from './sender.js'

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

const transports = new WeakMap<object, UpstreamDispatcher>()

/**
 * Has requests of adapted mounts, registered from now on, sent before http-proxy makes their destination, which parses the URL three times
 * and is not used for groups with an upstream of their own. Below what an `onRoute` hook puts around the handler, so that it still decides.
 */
export function skipDestinations (app: FastifyInstance): void {
  app.addHook('onRegister', (scope, { handler: own, preRewrite }: FastifyPluginOptions) => {
    // A `preRewrite` may refuse a request.
    if (!transports.has(Object(own)) || preRewrite !== undefined) return
    const { route } = scope
    Object.assign(scope, {
      route: ({ handler, ...rest }: RouteOptions) => route.call(scope, {
        ...rest,
        handler (request, reply) {
          const llm = modelCallOf(request)
          const isSent = llm !== null && sendsDirectly({ gateway: gatewayOf(request.server), llm, request, reply })
          return isSent ? undefined : handler.call(this, request, reply)
        },
      }),
    })
  })
}

/** Checks where adapted mounts, registered from now on, send their requests. Throws `LLM_GATEWAY_OPTION` at the start. */
export function checkAddresses (app: FastifyInstance): void {
  const found: Array<MountProblem & { readonly mount: string }> = []
  app.addHook('onRegister', ({ prefix }, options: MountAddress & Partial<Record<'handler' | 'prefix', unknown>>) => {
    const problem = transports.has(Object(options.handler)) ? mountProblem(prefix, options) : null
    if (problem !== null) found.push({ mount: prefix, ...problem })
  })
  app.addHook('onReady', async () => {
    for (const { mount, isFatal, text } of found) {
      if (isFatal) throw new OptionError('proxyOptions', `is spread into the mount at ${mount}, which ${text}`)
      app.log.warn(`proxyOptions is spread into the mount at ${mount}, which ${text}`)
    }
  })
}

/**
 * Fails the start if a mount, registered from now on, spreads `proxyOptions()` but has another handler; or, if a group has an upstream of
 * its own, another transport, which does not go there. Throws `LLM_GATEWAY_OPTION`.
 */
export function refuseOtherTransports (app: FastifyInstance, gateway: Gateway): void {
  const others: string[] = []
  const mutes: string[] = []
  app.addHook('onRegister', (_scope, options: Partial<Record<'config' | 'handler' | 'undici' | 'http' | 'http2' | 'prefix', unknown>>) => {
    const own = transports.get(Object(options.handler))
    if (own === undefined && Object(options.config).llm === 'proxy') mutes.push(String(options.prefix ?? '/'))
    if (own !== undefined && (options.undici !== own || Boolean(options.http) || Boolean(options.http2))) {
      others.push(String(options.prefix ?? '/'))
    }
  })
  app.addHook('onReady', async () => {
    const [[other], [mute]] = [others, mutes]
    if (mute !== undefined) {
      throw new OptionError('proxyOptions', `is spread into the mount at ${mute}, which has a handler of its own in place of theirs`)
    }
    if (other === undefined || !gateway.namesUpstreams) return
    throw new OptionError(
      'proxyOptions',
      `is spread into the mount at ${other}, which has an undici, http or http2 of its own: groups with an upstream could not go there`
    )
  })
}
