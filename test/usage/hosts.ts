/** The four ways in which replies come to be metered. */
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import llmGateway, { proxyOptions, type LlmGatewayOptions } from '../../plugins/index.js'
import { usage, type UsageOptions } from '../../plugins/usage/index.js'
import { gatewayOptions, startGateway, watchSettled, type Gateway } from '../helpers/gateway.js'

interface Scope {
  teardown: (close: () => unknown) => unknown
}

interface Host {
  readonly name: string
  /** What the gateway's own transport does, a host's mount cannot: reading on for usage after the caller has left. */
  readonly drains: boolean
  readonly start: (t: Scope, upstreamUrl: string, options?: HostOptions) => Promise<Gateway>
}

export interface HostOptions {
  usage?: UsageOptions
  forward?: NonNullable<LlmGatewayOptions['forward']>
  metrics?: NonNullable<LlmGatewayOptions['metrics']>
  mount?: Record<string, unknown>
}

async function mounted (app: FastifyInstance, upstreamUrl: string, options: () => object): Promise<void> {
  for (const prefix of ['/v1', '/v1beta']) {
    await app.register(httpProxy, { upstream: upstreamUrl, prefix, rewritePrefix: prefix, ...options() })
  }
}

function bundled (options: HostOptions): Partial<LlmGatewayOptions> {
  const { mount: _, ...plugins } = options
  return plugins
}

export const hosts: readonly [Host, Host, Host, Host] = [
  {
    name: 'routes of this package',
    drains: true,
    start: async (t, upstreamUrl, options = {}) => await startGateway(t, upstreamUrl, bundled(options)),
  },
  {
    name: 'a mount that spreads proxyOptions',
    drains: true,
    start: async (t, upstreamUrl, options = {}) => {
      const app = Fastify()
      t.teardown(() => app.close())
      const { upstreams: _, ...own } = gatewayOptions(upstreamUrl, { ...bundled(options), routes: false })
      await app.register(llmGateway, own)
      await mounted(app, upstreamUrl, () => ({ ...proxyOptions(options.forward), ...options.mount }))
      return { app, settled: watchSettled(app) }
    },
  },
  {
    name: 'a mount that nobody adapted',
    drains: false,
    start: async (t, upstreamUrl, options = {}) => {
      const app = Fastify()
      t.teardown(() => app.close())
      await mounted(app, upstreamUrl, () => options.mount ?? {})
      const { upstreams: _, ...own } = gatewayOptions(upstreamUrl, { ...bundled(options), routes: false })
      await app.register(llmGateway, own)
      return { app, settled: watchSettled(app) }
    },
  },
  {
    name: 'this plugin alone beside a mount',
    drains: false,
    start: async (t, upstreamUrl, options = {}) => {
      const app = Fastify()
      t.teardown(() => app.close())
      await mounted(app, upstreamUrl, () => options.mount ?? {})
      await app.register(usage, options.usage ?? {})
      return { app, settled: watchSettled(app) }
    },
  },
]
