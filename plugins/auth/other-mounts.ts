import type { FastifyInstance } from 'fastify'
import type { Gateway } from '../core/gateway.js'
import { endsInVersion } from '../core/url/segments.js'

/** The options of an `@fastify/http-proxy` mount that say where it sends a request. */
interface MountOptions {
  readonly upstream?: unknown
  readonly rewritePrefix?: unknown
  readonly config?: unknown
  readonly prefix?: unknown
}

const idle = 'the gateway stands in a scope of its own, in which no route is registered behind it, and guards none outside: wrap the ' +
  'plugin that registers it in fastify-plugin, or register the mount there, too'

/**
 * Finds mounts, registered from now on, that send to a path with a version but are no mount of model endpoints: nothing below them
 * counts as a model request, or all of it has routes elsewhere. If they lead to a provider, anybody reaches it there without a key. Call
 * the returned function once all plugins are there; it returns warnings. One of them is of a scope without a route, as a plugin file that
 * `@fastify/autoload` loads is one.
 */
export function watchMounts (app: FastifyInstance, gateway: Gateway): () => string[] {
  const targets = new Map<string, string>()
  let isIdle = Object.getPrototypeOf(app) !== Object.prototype
  app.addHook('onRoute', () => { isIdle = false })
  app.addHook('onRegister', ({ prefix }, options: MountOptions) => {
    const target = targetOf(options)
    if (endsInVersion(target) && Object(options.config).llm !== 'proxy') targets.set(prefix, target)
  })
  return () => [
    ...isIdle ? [idle] : [],
    ...[...targets].filter(([prefix]) => !gateway.mounts.has(`${prefix}/*`)).map(([prefix, target]) => {
      return `the mount at ${prefix} sends what is below it to ${target}, and nobody is asked for a key there: ` +
        'if that is a model provider, spread proxyOptions() into the mount, and give the gateway its prefix'
    }),
  ]
}

/** As http-proxy has it. */
function targetOf ({ upstream, rewritePrefix }: MountOptions): string {
  if (typeof rewritePrefix === 'string' && rewritePrefix !== '') return rewritePrefix
  return typeof upstream === 'string' && URL.canParse(upstream) ? new URL(upstream).pathname : ''
}
