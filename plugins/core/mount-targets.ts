import type { FastifyInstance, FastifyRequest } from 'fastify'
import { readAtVersion } from './rewritten-send.js'
import { segmentsOf } from './url/segments.js'
import { withoutQuery } from './url/single-version.js'

/** What of a mount of `@fastify/http-proxy` tells where it sends a request. */
interface MountOptions {
  readonly upstream?: unknown
  readonly rewritePrefix?: unknown
  readonly config?: unknown
  readonly prefix?: unknown
}

interface MountTarget {
  readonly prefix: string
  /** What takes the place of the prefix. */
  readonly target: string
  readonly isAdapted: boolean
}

/** Where mounts send what stands below them, as far as their options tell: those that are registered from now on. */
export class MountTargets {
  readonly #all: MountTarget[] = []

  constructor (app: FastifyInstance) {
    app.addHook('onRegister', ({ prefix }, options: MountOptions) => {
      if (typeof options.upstream !== 'string') return
      const isAdapted = Reflect.get(Object(options.config), 'llm') === 'proxy'
      this.#all.push({ prefix: prefix.replace(/\/$/, ''), target: targetOf(options.upstream, options.rewritePrefix), isAdapted })
    })
  }

  get all (): readonly MountTarget[] {
    return this.#all
  }

  /** True where the mount that serves a request would send it to a version. */
  sendToVersion (request: FastifyRequest): boolean {
    const route = String(request.routeOptions.url).replace(/\/\*?$/, '')
    return this.#all.some(({ prefix, target }) => prefix === route && readAtVersion(sentPath(prefix, target, request), request) !== null)
  }
}

/** As http-proxy has it. */
function targetOf (upstream: string, rewritePrefix: unknown): string {
  if (typeof rewritePrefix === 'string' && rewritePrefix !== '') return rewritePrefix
  return URL.canParse(upstream) ? new URL(upstream).pathname : '/'
}

function sentPath (prefix: string, target: string, request: FastifyRequest): string {
  const rest = segmentsOf(withoutQuery(request.url)).slice(segmentsOf(prefix).length)
  const named = target.replace(/:(\w+)/g, (_, name: string) => String(Reflect.get(Object(request.params), name)))
  return [...segmentsOf(named), ...rest].map((segment) => `/${segment}`).join('')
}
