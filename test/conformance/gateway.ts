import Fastify from 'fastify'
import llmGateway, { type LlmGatewayOptions } from '../../plugins/index.js'
import { families } from '../../plugins/protocols/index.js'
import { protocolsOf } from '../../plugins/protocols/list.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'

export interface Scope {
  teardown: (close: () => Promise<void>) => unknown
}

export interface Setup {
  readonly origin: string
  readonly upstream: Upstream
}

/** One key per group: each group may use the protocols of one family, `none` may use nothing through a gateway. */
export const keys = {
  openai: 'sk-openai-4711',
  anthropic: 'sk-anthropic-4712',
  gemini: 'sk-gemini-4713',
  none: 'sk-none-4714',
  spent: 'sk-spent-4715',
} as const

export const upstreamSecret = 'upstream-secret-4716'

/** Options of a gateway in front of `url`, as a host of all families would set them. */
export function optionsFor (url: string): LlmGatewayOptions {
  return {
    upstreams: { main: { url, credential: upstreamSecret } },
    groups: {
      openai: { protocols: protocolsOf(families.openai), upstream: 'main' },
      anthropic: { protocols: protocolsOf(families.anthropic), upstream: 'main' },
      gemini: { protocols: protocolsOf(families.gemini), upstream: 'main' },
      none: { protocols: ['chat_completions', 'messages', 'generate_content'], upstream: 'main', thirdParty: false },
      spent: { protocols: ['chat_completions'], upstream: 'main', limits: { balance: 0 } },
    },
    keys: Object.entries(keys).map(([group, secret]) => ({ id: `key-${group}`, group, secret })),
    metrics: { path: '/metrics' },
    forward: { drain: { maxMs: 0 } },
  }
}

/** The gateway on a real socket, in front of the scriptable upstream or of `url`. */
export async function startGateway (t: Scope, more: Partial<LlmGatewayOptions> = {}, url?: string): Promise<Setup> {
  const upstream = await startUpstream(t)
  const app = Fastify({ forceCloseConnections: true })
  await app.register(llmGateway, { ...optionsFor(url ?? upstream.url), ...more })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(async () => await app.close())
  return { origin, upstream }
}
