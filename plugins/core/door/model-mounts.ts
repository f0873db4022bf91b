import type { FastifyInstance } from 'fastify'
import { endpoints, routePattern } from '../../protocols/index.js'
import type { Resolve } from '../url/resolve.js'
import { segmentsOf } from '../url/segments.js'

/** What of the gateway may still change while plugins are registered. */
interface LateParts {
  readonly prefix: string
  readonly resolve: Resolve
}

/**
 * Which routes of a host serve model endpoints among everything else below them, such as `/v1/*` of a proxy. Unguarded, other
 * paths there would reach the provider with the mount's credential, from anybody.
 */
export class ModelMounts {
  readonly #app: FastifyInstance
  readonly #gateway: LateParts
  readonly #known = new Map<string, boolean>()
  readonly #guarded = new Map<string, boolean>()

  constructor (app: FastifyInstance, gateway: LateParts) {
    this.#app = app
    this.#gateway = gateway
  }

  /** True for a mount of model endpoints. `pattern`: a route's URL as registered. Not to be called before all routes are registered. */
  has (pattern: string): boolean {
    const known = this.#known.get(pattern)
    if (known !== undefined) return known
    const serves = this.#serves(segmentsOf(pattern)) || (this.#isHalfOfMount(pattern) && this.has(`${pattern}/*`))
    this.#known.set(pattern, serves)
    return serves
  }

  #serves (mount: readonly string[]): boolean {
    return endpoints.some((endpoint) => {
      const url = this.#gateway.prefix + routePattern(endpoint)
      const path = segmentsOf(url)
      return covers(mount, path) && (standsAt(mount, path) || this.#mayServe(mount, url, this.#serverOf(endpoint.method, url)))
    })
  }

  /** False for a mount below which nothing counts as a model request. Not to be called before all plugins are registered. */
  guards (pattern: string): boolean {
    const known = this.#guarded.get(pattern)
    if (known !== undefined) return known
    const mount = segmentsOf(pattern)
    const guarded = this.#gateway.resolve('POST', pattern.replace('*', 'any'), {}) !== null ||
      endpoints.some((endpoint) => covers(mount, segmentsOf(this.#gateway.prefix + routePattern(endpoint))))
    this.#guarded.set(pattern, guarded)
    return guarded
  }

  /**
   * The most specific route without parameters that serves an endpoint: its own, or a wildcard below some part of its path. Null if none
   * is found.
   */
  #serverOf (method: string, url: string): string | null {
    const path = segmentsOf(url)
    const wildcards = Array.from(path, (_, taken) => `/${[...path.slice(0, path.length - 1 - taken), '*'].join('/')}`)
    return [url, ...wildcards].find((candidate) => this.#app.hasRoute({ method, url: candidate })) ?? null
  }

  /** A proxy's mount has a route for its prefix beside the wildcard below it. If the prefix has a parameter, both are equally open. */
  #isHalfOfMount (pattern: string): boolean {
    return pattern.includes(':') && !pattern.endsWith('*') && this.#app.hasRoute({ method: 'POST', url: `${pattern}/*` })
  }

  /** True if the mount serves the endpoint, or that is not certain. */
  #mayServe (mount: readonly string[], endpoint: string, server: string | null): boolean {
    if (server === null) return true
    if (!server.endsWith('/*')) return false
    const own = ownSegments(mount)
    if (server !== endpoint) return segmentsOf(server).length - 1 <= own.length
    // A parameter in place of the endpoint's fixed text gets the paths that no fixed route takes.
    return segmentsOf(server).slice(0, -1).every((_, i) => own[i]?.includes(':') === false)
  }
}

/** A mount's routes are its prefix itself and all below it. */
function covers (mount: readonly string[], path: readonly string[]): boolean {
  return mount.every((segment, i) => segment === '*' || (path[i] !== undefined && mayBe(segment, path[i])))
}

/**
 * True for a wildcard directly below an endpoint's own path: whoever serves the endpoint, what comes after it leads to the same
 * provider.
 */
function standsAt (mount: readonly string[], path: readonly string[]): boolean {
  return mount.at(-1)?.endsWith('*') === true && ownSegments(mount).length === path.length
}

function ownSegments (mount: readonly string[]): readonly string[] {
  return mount.filter((segment) => segment !== '*')
}

/** Before a parameter or a wildcard a segment may have fixed text, as `/v1*` has. In a host's router its case may not count. */
function mayBe (segment: string, text: string): boolean {
  const [fixed = ''] = segment.toLowerCase().split(/[:*]/, 1)
  return fixed.length < segment.length ? text.toLowerCase().startsWith(fixed) : text.toLowerCase() === fixed
}
