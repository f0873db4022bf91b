import type { FastifyInstance } from 'fastify'

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

/** Where mounts send what stands below them, as far as their options tell, for warnings: those that are registered from now on. */
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
}

/** As http-proxy has it. */
function targetOf (upstream: string, rewritePrefix: unknown): string {
  if (typeof rewritePrefix === 'string' && rewritePrefix !== '') return rewritePrefix
  return URL.canParse(upstream) ? new URL(upstream).pathname : '/'
}
