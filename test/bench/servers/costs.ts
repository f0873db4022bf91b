/** The whole gateway on its own routes with prices, a label of its keys in the metrics, and where it is asked for a budget in money. */
import fastify from 'fastify'
import llmGateway from '../../../plugins/index.js'
import { gatewayOptions } from './gateway-options.js'
import { portOf, serve, settings } from './serve.js'

const { groups, ...options } = gatewayOptions()
const budgets = process.env['BENCH_MONEY'] === undefined
  ? {}
  : { budgets: [{ cost: 8_000_000, period: 'month' as const, timezone: 'Europe/Berlin' }] }
const priced = Object.entries(groups).map(([name, group]) => [
  name, { ...group, labels: { team: 'bench' }, limits: { ...group.limits, ...budgets } },
])
const app = fastify()
await app.register(llmGateway, {
  ...options,
  groups: Object.fromEntries(priced),
  metrics: { labels: ['team'] },
  prices: { models: { 'bench-*': { input: 1.25, cache_read: 0.125, output: 10, reasoning: 10 } } },
  forward: { connections: settings.connections },
})
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
serve(portOf(app.server.address()), { metrics: async () => (await app.inject('/metrics')).body })
