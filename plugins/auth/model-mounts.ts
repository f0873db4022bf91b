import type { FastifyInstance } from 'fastify'
import { endpoints, routePattern } from '../protocols/index.js'
import type { Gateway } from '../request.js'

/**
 * Which routes of a host serve model endpoints beside everything else below them, such as `/v1/*` of a proxy: what they
 * are asked beyond the endpoints would reach the provider, with the mount's credential, from anybody.
 */
export class ModelMounts {
  readonly #app: FastifyInstance
  readonly #gateway: Gateway
  readonly #known = new Map<string, boolean>()

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
}

function segments (pattern: string): string[] {
  return pattern.split('/').filter((segment) => segment !== '')
}

/** A mount's routes are its prefix itself and all below it. */
function covers (mount: readonly string[], path: readonly string[]): boolean {
  return mount.every((segment, i) => segment === '*' || (path[i] !== undefined && (segment.startsWith(':') || segment === path[i])))
}
