/** Hosts that forward model requests by a mount of their own. */
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { everyProtocol, secret, watchSettled, type Gateway } from '../helpers/gateway.js'

export const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
export const chat = '{"model":"m", "big":12345678901234567890, "one": 1.0,"messages":[{"role":"user","content":"hi"}]}'
export const hostSecret = 'host-provider-secret'

export interface Mount {
  readonly name: string
  readonly options: () => Record<string, unknown>
}

export const mounts: readonly Mount[] = [
  { name: 'a mount that spreads proxyOptions', options: () => ({ ...proxyOptions() }) },
  { name: 'a mount whose options nobody touched', options: () => ({}) },
  { name: 'a mount that parses bodies', options: () => ({ proxyPayloads: false }) },
  { name: 'a mount with a preValidation hook', options: () => ({ preValidation: async () => {} }) },
]

export async function startHost (
  t: { teardown: (close: () => unknown) => unknown }, upstreamUrl: string, mount: Mount, first: 'mount' | 'gateway' = 'mount'
): Promise<Gateway> {
  const app = Fastify()
  await app.register(async (scope) => scope.get('/older', async (request) => ({ llm: request.llm })))
  const register = async (): Promise<void> => {
    for (const prefix of ['/v1', '/v1beta']) await app.register(httpProxy, hostMount(upstreamUrl, prefix, mount))
  }
  if (first === 'mount') await register()
  await app.register(llmGateway, {
    groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
  })
  if (first === 'gateway') await register()
  app.get('/health', async (request) => ({ llm: request.llm }))
  t.teardown(() => app.close())
  return { app, settled: watchSettled(app) }
}

export function hostMount (upstream: string, prefix: string, mount: Mount): { upstream: string } {
  const replyOptions = {
    rewriteRequestHeaders: (_: unknown, headers: Record<string, unknown>) => ({
      ...headers, authorization: `Bearer ${hostSecret}`, 'x-host': 'yes',
    }),
    rewriteHeaders: (headers: Record<string, unknown>) => ({ ...headers, 'x-from-host': 'yes' }),
  }
  const options = { upstream, prefix, rewritePrefix: prefix, replyOptions, ...mount.options() }
  return options
}

export async function startSeam (
  t: { teardown: (close: () => unknown) => unknown }, upstreamUrl: string, replyOptions: object,
  options: Parameters<typeof proxyOptions>[0] = {}
): Promise<FastifyInstance> {
  const app = Fastify()
  const mount = { upstream: upstreamUrl, prefix: '/v1', rewritePrefix: '/v1', replyOptions, ...proxyOptions(options) }
  await app.register(httpProxy, mount)
  t.teardown(() => app.close())
  return app
}
