import type { FastifyInstance } from 'fastify'
import { unguardedMount } from '../core/options.js'
import type { Gateway } from '../core/gateway.js'
import { endpoints, routePattern } from '../protocols/index.js'

/**
 * Which routes of a host serve model endpoints beside everything else below them, such as `/v1/*` of a proxy: what they
 * are asked beyond the endpoints would reach the provider, with the mount's credential, from anybody.
 */
export class ModelMounts {
  readonly #app: FastifyInstance
  readonly #gateway: Gateway
  readonly #known = new Map<string, boolean>()
  readonly #guarded = new Map<string, boolean>()

  constructor (app: FastifyInstance, gateway: Gateway) {
    this.#app = app
    this.#gateway = gateway
  }

  /** `pattern`: a route's URL as it was registered. Not before all routes are there. */
  has (pattern: string): boolean {
    const known = this.#known.get(pattern)
    if (known !== undefined) return known
    const mount = segments(pattern)
    const serves = endpoints.some((endpoint) => {
      const url = this.#gateway.prefix + routePattern(endpoint)
      return covers(mount, segments(url)) && !this.#app.hasRoute({ method: endpoint.method, url })
    })
    this.#known.set(pattern, serves)
    return serves
  }

  /**
   * Fails the start where a mount that is registered from now on relies on this package, and nothing below it would ever be
   * taken for a model request: nobody would be asked for a key there. Throws `LLM_GATEWAY_OPTION`.
   */
  refuseUnguarded (): void {
    const adapted: string[] = []
    this.#app.addHook('onRoute', ({ url, config }) => {
      if (config?.llm === 'proxy' && url.endsWith('*')) adapted.push(url)
    })
    this.#app.addHook('onReady', async () => {
      const open = adapted.find((pattern) => !this.guards(pattern))
      if (open !== undefined) throw unguardedMount(open)
    })
  }

  /** False for a mount below which nothing would be taken for a model request. Not before all plugins have told where they stand. */
  guards (pattern: string): boolean {
    const known = this.#guarded.get(pattern)
    if (known !== undefined) return known
    const mount = segments(pattern)
    const guarded = this.#gateway.resolve('POST', pattern.replace('*', 'any'), {}) !== null ||
      endpoints.some((endpoint) => covers(mount, segments(this.#gateway.prefix + routePattern(endpoint))))
    this.#guarded.set(pattern, guarded)
    return guarded
  }
}

function segments (pattern: string): string[] {
  return pattern.split('/').filter((segment) => segment !== '')
}

/** A mount's routes are its prefix itself and all below it. */
function covers (mount: readonly string[], path: readonly string[]): boolean {
  return mount.every((segment, i) => segment === '*' || (path[i] !== undefined && (segment.startsWith(':') || segment === path[i])))
}
