import type { FastifyInstance, FastifyPluginOptions, RouteOptions } from 'fastify'
import { OptionError } from '../core/config/options.js'
import { modelCallOf } from '../core/call/model-call.js'
import { gatewayOf, type Gateway } from '../core/gateway.js'
import type { UpstreamDispatcher } from './dispatcher.js'
import { mountProblem, type MountAddress, type MountProblem } from './mount-address.js'
import { sendsDirectly } from './sender.js'

/** Of the mounts that spread `proxyOptions()`, by the handler that these bring. */
export const transports = new WeakMap<object, UpstreamDispatcher>()

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

type MountOptions = MountAddress & Partial<Record<'config' | 'handler' | 'undici' | 'http' | 'http2' | 'prefix', unknown>>

/**
 * Checks mounts, registered from now on, that spread `proxyOptions()`. Fails the start for one with another handler; for one with another
 * transport, if a group has an upstream of its own, where that does not go; and for one through which nothing would arrive. Throws
 * `LLM_GATEWAY_OPTION`.
 */
export function checkMounts (app: FastifyInstance, gateway: Gateway): void {
  const mutes: string[] = []
  const others: string[] = []
  const misled: Array<MountProblem & { readonly mount: string }> = []
  app.addHook('onRegister', ({ prefix }, options: MountOptions) => {
    const own = transports.get(Object(options.handler))
    const place = String(options.prefix ?? '/')
    if (own === undefined) {
      if (Object(options.config).llm === 'proxy') mutes.push(place)
      return
    }
    if (options.undici !== own || Boolean(options.http) || Boolean(options.http2)) others.push(place)
    const problem = mountProblem(prefix, options)
    if (problem !== null) misled.push({ mount: prefix, ...problem })
  })
  app.addHook('onReady', async () => {
    const [mute] = mutes
    const [other] = gateway.namesUpstreams ? others : []
    if (mute !== undefined) throw wrongMount(mute, 'has a handler of its own in place of theirs')
    if (other !== undefined) throw wrongMount(other, 'has an undici, http or http2 of its own: groups with an upstream could not go there')
    for (const { mount, isFatal, text } of misled) {
      if (isFatal) throw wrongMount(mount, text)
      app.log.warn(`proxyOptions is spread into the mount at ${mount}, which ${text}`)
    }
  })
}

function wrongMount (mount: string, text: string): OptionError {
  return new OptionError('proxyOptions', `is spread into the mount at ${mount}, which ${text}`)
}
