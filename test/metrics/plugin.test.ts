import { gunzipSync } from 'node:zlib'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import type { Labels } from '../../plugins/core/types.js'
import { metrics, type MetricsOptions } from '../../plugins/metrics/index.js'
import { startUpstream } from '../helpers/upstream.js'
import { samplesOf } from './meters.js'
import { groupOf, settledRequest } from './requests.js'

async function start (t: Test, options: MetricsOptions = {}): Promise<FastifyInstance> {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(metrics, options)
  return app
}

t.test('serves its text at /metrics', async (t) => {
  const app = await start(t)
  gatewayOf(app).recorder.settled(settledRequest())
  const reply = await app.inject('/metrics')
  t.equal(reply.statusCode, 200)
  t.equal(reply.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  t.match(reply.body, /^llm_gateway_build_info\{version="[^"]+"\} 1$/m)
  t.equal(
    samplesOf(reply.body).get(
      'llm_gateway_requests_total{protocol="chat_completions",group="chat",model="gpt-5",stream="false",outcome="ok"}'
    ),
    1
  )
})

t.test('speaks OpenMetrics to a server that asks for it', async (t) => {
  const accept =
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
  const reply = await (await start(t)).inject({ url: '/metrics', headers: { accept } })
  t.equal(reply.headers['content-type'], 'application/openmetrics-text; version=1.0.0; charset=utf-8')
  t.match(reply.body, /# EOF\n$/)
})

t.test('compresses for a server that accepts gzip', async (t) => {
  const reply = await (await start(t)).inject({ url: '/metrics', headers: { 'accept-encoding': 'gzip' } })
  t.equal(reply.headers['content-encoding'], 'gzip')
  t.equal(reply.headers.vary, 'accept, accept-encoding')
  t.match(gunzipSync(reply.rawPayload).toString(), 'llm_gateway_build_info')
  const coded = async (accept: string): Promise<unknown> => (
    await (await start(t)).inject({ url: '/metrics', headers: { 'accept-encoding': accept } })
  ).headers['content-encoding']
  t.equal(await coded('br, gzip;q=0.5'), 'gzip')
  t.equal(await coded('gzip;q=0, identity'), undefined, 'not where it is refused')
  t.equal(await coded('GZIP; q=0.00'), undefined)
})

t.test('serves elsewhere, or nowhere', async (t) => {
  const elsewhere = await start(t, { path: '/internal' })
  t.equal((await elsewhere.inject('/internal')).statusCode, 200)
  t.equal((await elsewhere.inject('/metrics')).statusCode, 404)
  t.equal((await (await start(t, { path: false })).inject('/metrics')).statusCode, 404)
})

t.test('answers to addresses, names without a dot and listed names where a list is given, else to all', async (t) => {
  const statusOf = async (app: FastifyInstance, host: string) => (await app.inject({ url: '/metrics', headers: { host } })).statusCode
  const listed = await start(t, { hosts: ['metrics.example'] })
  for (const host of ['metrics.example:8080', '10.1.2.3:8080', 'gateway:8080']) t.equal(await statusOf(listed, host), 200, host)
  t.equal(await statusOf(listed, 'evil.example'), 403)
  t.equal(await statusOf(await start(t), 'gateway.example'), 200)
  await t.rejects(start(t, { hosts: ['a b'] }), { code: 'LLM_GATEWAY_OPTION', message: /metrics\.hosts\[0\] must be a name alone/ })
})

t.test('two apps in one process count apart', async (t) => {
  const one = await start(t)
  const two = await start(t)
  gatewayOf(one).recorder.authFailed('messages', 'unknown_key')
  t.match((await one.inject('/metrics')).body, 'unknown_key')
  t.notMatch((await two.inject('/metrics')).body, 'unknown_key')
})

t.test('an app that takes over from another goes on counting', async (t) => {
  const cells = {}
  const one = await start(t, { cells })
  gatewayOf(one).recorder.authFailed('messages', 'unknown_key')
  const two = await start(t, { cells })
  gatewayOf(two).recorder.authFailed('messages', 'unknown_key')
  t.match((await two.inject('/metrics')).body, 'auth_failures_total{protocol="messages",reason="unknown_key"} 2\n')
})

t.test('alone beside a mount of the host, it counts what passes there', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  app.register(httpProxy, { upstream: upstream.url })
  app.register(metrics)
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const reply = await fetch(`${url}/v1beta/models/gemini-2.5-flash:generateContent`, {
    method: 'POST', body: '{}', headers: { 'content-type': 'application/json' },
  })
  await reply.text()
  const text = await (await fetch(`${url}/metrics`)).text()
  t.equal(
    samplesOf(text).get(
      'llm_gateway_requests_total{protocol="generate_content",group="none",model="gemini-2.5-flash",stream="false",outcome="ok"}'
    ),
    1
  )
})

t.test('models can be listed', async (t) => {
  const app = await start(t, { models: ['gpt-5'] })
  gatewayOf(app).recorder.settled(settledRequest({ model: 'gpt-6' }))
  t.match((await app.inject('/metrics')).body, 'model="other"')
})

t.test('without limits of its own it has 100 models, 100 values of a label and 1,000 label sets', async (t) => {
  const app = await start(t, { labels: ['team'] })
  const settle = (at: number, model: string, labels: Labels): void => {
    gatewayOf(app).recorder.settled(settledRequest({ model, auth: { group: { ...groupOf(`g${at}`), labels } } }))
  }
  for (let at = 0; at < 101; at += 1) settle(at, `m${at}`, { team: `t${at}` })
  for (let at = 101; at < 1_001; at += 1) settle(at, 'm0', {})
  const { body } = await app.inject('/metrics')
  const requests = [...samplesOf(body).keys()].filter((name) => name.startsWith('llm_gateway_requests_total'))
  const told = (label: string): unknown => new Set(requests.map((name) => new RegExp(`${label}="([^"]*)"`).exec(name)?.[1])).size
  // One more is for all others, one of labels for none.
  t.strictSame([told('model'), told('team'), requests.length], [101, 102, 1_001])
})

t.test('a route of the app where the text would be served is told by the option that moves it', async (t) => {
  for (const scope of ['', '/a']) {
    const app = Fastify()
    t.teardown(() => app.close())
    await t.rejects(async () => await app.register(async (inner) => {
      inner.get('/metrics', async () => 'the host\'s')
      await inner.register(metrics)
    }, { prefix: scope }), { code: 'LLM_GATEWAY_OPTION', message: /metrics.path is a route of the app already: \/metrics/ })
  }
})

t.test('wrong options are told by name', async (t) => {
  const wrong: Record<string, unknown> = {
    registry: 1,
    cells: 1,
    path: 'metrics',
    models: 'gpt-5',
    maxModels: 0,
    maxCells: 1.5,
    openTelemetry: 'yes',
    meterProvider: 'global',
    semconv: 'old',
    colour: 'red',
  }
  const others = [
    ['registry', { metrics: async () => '' }], ['meterProvider', {}], ['path', ['/a']], ['path', '/a?b'], ['path', '/a%20b'],
  ] as const
  for (const [name, value] of [...Object.entries(wrong), ...others]) {
    const app = Fastify()
    t.teardown(() => app.close())
    await t.rejects(async () => await app.register(metrics, { [name]: value }), {
      code: 'LLM_GATEWAY_OPTION', message: new RegExp(`metrics.${name} `),
    })
  }
  for (const [models, message] of [[[1], /metrics\.models\[0\] must be a text/], [['m', 'm-*'], /metrics\.models\[1\] must be the whole/]]) {
    const app = Fastify()
    t.teardown(() => app.close())
    await t.rejects(async () => await app.register(metrics, Object({ models })), { code: 'LLM_GATEWAY_OPTION', message })
  }
})
