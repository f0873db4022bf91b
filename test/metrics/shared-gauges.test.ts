/** Gauges of gateways that count together, and of more label sets than there are cells. */
import Fastify, { type FastifyInstance } from 'fastify'
import { Registry } from 'prom-client'
import t, { type Test } from 'tap'
import llmGateway, { type LlmGatewayOptions } from '../../plugins/index.js'
import { call, everyProtocol, gatewayOptions, listen, read, secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { newMeters, samplesOf, valuesOf } from './meters.js'

const body = '{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}'

async function scrape (app: FastifyInstance, url: string): Promise<Map<string, number>> {
  return samplesOf((await app.inject(url)).body)
}

async function startTwo (t: Test, url: string, shared: Partial<LlmGatewayOptions['metrics']>, health?: object): Promise<FastifyInstance> {
  const app = Fastify()
  t.teardown(() => app.close())
  for (const [place, balance] of [['a', 1_000], ['b', 1_000_000]] as const) {
    await app.register(async (scope) => {
      await scope.register(llmGateway, gatewayOptions(url, {
        groups: { all: { protocols: everyProtocol, upstream: 'main', limits: { balance } } },
        metrics: { ...shared, path: '/metrics' },
        ...health !== undefined && { health },
      }))
    }, { prefix: `/${place}` })
  }
  return app
}

for (const [name, shared] of [['a registry', { registry: new Registry() }], ['cells', { cells: {} }]] as const) {
  t.test(`gauges of gateways that share ${name} tell of all of them`, async (t) => {
    const upstream = await startUpstream(t)
    const app = await startTwo(t, upstream.url, shared)
    const url = await listen(app)
    let release = (): void => {}
    const gate = new Promise<void>((resolve) => { release = resolve })
    const calls = ['a', 'a', 'b'].map((place) => {
      upstream.queue({ fixture: 'chat_completions.json', before: async () => await gate })
      return call(`${url}/${place}/v1/chat/completions`, { body })
    })
    for (let seen = 0; seen < calls.length; seen += 1) await upstream.requests.next()
    const samples = await scrape(app, '/a/metrics')
    t.equal(samples.get('llm_gateway_upstream_active_requests{upstream="main"}'), 3)
    t.equal(samples.get('llm_gateway_upstream_available{upstream="main"}'), 1)
    const ratio = Number(samples.get('llm_gateway_balance_remaining_ratio{group="all"}'))
    t.ok(ratio > 0 && ratio < 0.9, `the least of both: ${ratio}`)
    release()
    for (const { reply } of calls) await read(await reply)
  })
}

t.test('what runs at an upstream whose health two gateways share is told once', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startTwo(t, upstream.url, { cells: {} }, {})
  const url = await listen(app)
  upstream.queue({ stallAt: 'headers' })
  const { request } = call(`${url}/a/v1/chat/completions`, { body })
  await upstream.requests.next()
  t.equal((await scrape(app, '/b/metrics')).get('llm_gateway_upstream_active_requests{upstream="main"}'), 1)
  request.destroy()
})

t.test('what has no cell of its own is in one for all others, and is one overflow however often it is read', async (t) => {
  const upstream = await startUpstream(t)
  const ids = ['g1', 'g2', 'g3', 'g4']
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url, {
    groups: Object.fromEntries(ids.map((id) => [id, {
      protocols: everyProtocol, upstream: 'main', limits: { balance: id === 'g3' ? 1_000 : 1_000_000 },
    }])),
    keys: ids.map((id) => ({ id, group: id, secret: secret + id })),
    metrics: { maxCells: 1 },
  }))
  const url = await listen(app)
  for (const id of ids) {
    const { reply } = call(`${url}/v1/chat/completions`, { body, headers: { authorization: `Bearer ${secret}${id}` } })
    await read(await reply)
  }
  const overflow = 'llm_gateway_label_overflow_total{label="group"}'
  const samples = await scrape(app, '/metrics')
  const ratio = Number(samples.get('llm_gateway_balance_remaining_ratio{group="other"}'))
  t.ok(ratio < 0.99, `the least of those without a cell: ${ratio}`)
  const told = (await scrape(app, '/metrics')).get(overflow)
  t.equal((await scrape(app, '/metrics')).get(overflow), told)
  t.ok(Number(told) >= 3)
})

t.test('values of one series become one as those of two processes do', async (t) => {
  const meters = newMeters({ maxCells: 2 })
  const { recorder } = meters
  for (const value of [3, 1, 2]) {
    recorder.gauge('ledger_lag_seconds', () => [{ labels: {}, value }])
    recorder.gauge('balance_remaining_ratio', () => [{ labels: { group: 'x' }, value }])
    recorder.gauge('upstream_active_requests', () => ['a', 'b', 'c', 'd'].map((upstream) => ({ labels: { upstream }, value })))
  }
  await valuesOf(meters)
  t.match(await valuesOf(meters), {
    llm_gateway_ledger_lag_seconds: 3,
    'llm_gateway_balance_remaining_ratio{group="x"}': 1,
    'llm_gateway_upstream_active_requests{upstream="a"}': 6,
    'llm_gateway_upstream_active_requests{upstream="other"}': 12,
    'llm_gateway_label_overflow_total{label="upstream"}': 2,
  })
})

t.test('no more overflows are remembered than a process has room for', async (t) => {
  const meters = newMeters({ maxCells: 1 })
  const samples = Array.from({ length: 100_003 }, (_, at) => ({ labels: { upstream: String(at) }, value: 1 }))
  meters.recorder.gauge('upstream_active_requests', () => samples)
  await valuesOf(meters)
  const { 'llm_gateway_label_overflow_total{label="upstream"}': told } = await valuesOf(meters)
  t.ok(Number(told) > 100_002, `${told}: what was forgotten is told again`)
})
