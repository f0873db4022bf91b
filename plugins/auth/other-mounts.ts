import type { FastifyInstance } from 'fastify'
import type { Gateway } from '../core/gateway.js'
import { endsInVersion } from '../core/url/segments.js'

/** What of a mount of `@fastify/http-proxy` tells where it sends a request. */
interface MountOptions {
  readonly upstream?: unknown
  readonly rewritePrefix?: unknown
  readonly config?: unknown
  readonly prefix?: unknown
}

/**
 * Of mounts that are registered from now on: those that send what stands below them to a version, and are no mount of model endpoints, as
 * nothing below them is taken for a model request, or all that is has routes elsewhere. They may be for another server; where they are not,
 * anybody reaches the provider there. What is returned is to be asked once all plugins are there.
 */
export function watchMounts (app: FastifyInstance, gateway: Gateway): () => string[] {
  const targets = new Map<string, string>()
  app.addHook('onRegister', ({ prefix }, options: MountOptions) => {
    const target = targetOf(options)
    if (endsInVersion(target) && Reflect.get(Object(options.config), 'llm') !== 'proxy') targets.set(prefix, target)
  })
  return () => [...targets].filter(([prefix]) => !gateway.mounts.has(`${prefix}/*`)).map(([prefix, target]) => {
    return `the mount at ${prefix} sends what is below it to ${target}, and nobody is asked for a key there: ` +
      'if that is a model provider, spread proxyOptions() into the mount, and give the gateway its prefix'
  })
}

/** As http-proxy has it. */
function targetOf ({ upstream, rewritePrefix }: MountOptions): string {
  if (typeof rewritePrefix === 'string' && rewritePrefix !== '') return rewritePrefix
  return typeof upstream === 'string' && URL.canParse(upstream) ? new URL(upstream).pathname : ''
}
