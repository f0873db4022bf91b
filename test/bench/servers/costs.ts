/**
 * Gateways in one process, each with a port of its own: as the chain is, twice, with prices and a budget in money, and with a label of its
 * keys in the metrics besides. What one process gets of its compilers by luck, all of them get.
 */
import fastify, { type FastifyInstance } from 'fastify'
import llmGateway, { type LlmGatewayOptions } from '../../../plugins/index.js'
import { gatewayOptions } from './gateway-options.js'
import { portOf, serve, settings } from './serve.js'

const options = { ...gatewayOptions(), forward: { connections: settings.connections } }
const prices = { models: { 'bench-*': { input: 1.25, cache_read: 0.125, output: 10, reasoning: 10 } } }
const budgets = [{ cost: 8_000_000, period: 'month', timezone: 'Europe/Berlin' }] as const

function priced (metrics: Pick<LlmGatewayOptions, 'metrics'>): LlmGatewayOptions {
  const groups = Object.entries(options.groups).map(([name, group]) => [
    name, { ...group, labels: { team: 'bench' }, limits: { ...group.limits, budgets } },
  ])
  return { ...options, groups: Object.fromEntries(groups), ...metrics, prices }
}

async function start (options: LlmGatewayOptions): Promise<FastifyInstance> {
  const app = fastify()
  await app.register(llmGateway, options)
  await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
  return app
}

const apps = [await start(options), await start(options), await start(priced({})), await start(priced({ metrics: { labels: ['team'] } }))]
const ports = apps.map(({ server }) => portOf(server.address()))
// `--profile costs` is of all that a price brings.
serve(ports.at(-1) ?? 0, {
  measure: async () => ports,
  metrics: async () => (await Promise.all(apps.map(app => app.inject('/metrics')))).map(({ body }) => body).join('\n'),
})
