/** A gateway in this process in front of one pool, and a provider for each of its members. */
import Fastify from 'fastify'
import { gatewayOf } from '../../plugins/core/gateway.js'
import llmGateway from '../../plugins/index.js'
import type { PoolOptions } from '../../plugins/upstreams/options.js'
import { call, gatewayOptions, listen, read } from '../helpers/gateway.js'
import type { Upstream } from '../helpers/upstream.js'

export interface PoolApp {
  readonly origin: string
  /** The sum of a metric of the gateway's. */
  readonly metric: (name: string) => number
  readonly close: () => Promise<void>
}

export async function startPoolApp (members: Readonly<Record<string, Upstream>>, pool: Omit<PoolOptions, 'members'>): Promise<PoolApp> {
  const app = Fastify()
  await app.register(llmGateway, gatewayOptions('', {
    upstreams: Object.fromEntries(Object.entries(members).map(([name, { url }]) => [name, { url, credential: 'x' }])),
    pools: { pool: { affinity: 'none', ...pool, members: Object.keys(members) } },
    groups: { all: { protocols: ['chat_completions'], upstream: 'pool', limits: { concurrency: 1_000_000, balance: 1_000_000_000 } } },
    log: false,
  }))
  const origin = await listen(app)
  const { metrics } = gatewayOf(app)
  return {
    origin,
    metric: (name) => (metrics.find((each) => each.name === `llm_gateway_${name}`)?.read() ?? []).reduce(
      (sum, value) => sum + Number(Reflect.get(value, 'value')), 0
    ),
    close: async () => await app.close(),
  }
}

export function chatOf (model: string, stream = false): string {
  return JSON.stringify({
    model, stream, ...stream && { stream_options: { include_usage: true } }, messages: [{ role: 'user', content: 'Hi' }],
  })
}

export interface Answered {
  readonly status: number
  readonly text: string
  readonly ms: number
}

/** One chat on a connection of its own. */
export async function chat (origin: string, body: string): Promise<Answered> {
  const since = performance.now()
  const reply = await call(`${origin}/v1/chat/completions`, { body }).reply
  const { bytes } = await read(reply)
  return { status: Number(reply.statusCode), text: bytes.toString(), ms: performance.now() - since }
}
