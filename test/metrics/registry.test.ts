import { Counter, Registry, register, type OpenMetricsContentType } from 'prom-client'
import t from 'tap'
import Fastify from 'fastify'
import metrics from '../../plugins/metrics/index.js'
import { plainText, renderText } from '../../plugins/metrics/exposition.js'
import { joinRegistry } from '../../plugins/metrics/registry.js'
import { newMeters, samplesOf } from './meters.js'
import { noTokens, settledRequest } from './requests.js'

function filled () {
  const meters = newMeters()
  meters.recorder.settled(settledRequest({ usage: { ...noTokens, input: 3, output: 4 }, stream: true }))
  meters.recorder.keyLookedUp('miss', 0.002)
  return meters
}

t.test('a registry shows the very samples of our own text', async (t) => {
  const { store } = filled()
  const registry = new Registry()
  joinRegistry(registry, store.families)
  t.strictSame(samplesOf(await registry.metrics()), samplesOf(await renderText(store.families, plainText)))
  const json = await registry.getMetricsAsJSON()
  t.equal(json.length, store.families.length)
})

t.test('an OpenMetrics registry shows them too', async (t) => {
  const { store } = filled()
  const registry = new Registry<OpenMetricsContentType>()
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  joinRegistry(registry, store.families)
  t.match(await registry.metrics(), '# TYPE llm_gateway_key_lookups counter\nllm_gateway_key_lookups_total{result="miss"} 1')
})

t.test('two apps with one registry add up in the same cells', async (t) => {
  const registry = new Registry()
  for (const name of ['one', 'two']) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(metrics, { registry })
    app.llm.recorder.authFailed('messages', 'unknown_key')
    t.equal((await app.inject('/metrics')).statusCode, 404, `${name}: the registry is served by its owner`)
  }
  t.equal(samplesOf(await registry.metrics()).get('llm_gateway_auth_failures_total{protocol="messages",reason="unknown_key"}'), 2)
})

t.test('a registry that was cleared is filled again', async (t) => {
  const registry = new Registry()
  for (const name of ['one', 'two']) {
    registry.clear()
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(metrics, { registry })
    t.match(await registry.metrics(), 'llm_gateway_build_info{version="', name)
  }
})

t.test('a reset of the registry takes no count back', async (t) => {
  const { store } = filled()
  const registry = new Registry()
  joinRegistry(registry, store.families)
  registry.resetMetrics()
  t.equal(samplesOf(await registry.metrics()).get('llm_gateway_key_lookups_total{result="miss"}'), 1)
})

t.test('a foreign metric of one of our names is an error that says so', async (t) => {
  const registry = new Registry()
  registry.registerMetric(new Counter({ name: 'llm_gateway_requests_total', help: 'x', registers: [] }))
  const app = Fastify()
  t.teardown(() => app.close())
  await t.rejects(async () => await app.register(metrics, { registry }), { code: 'LLM_GATEWAY_OPTION', message: /metrics.registry already holds .*llm_gateway_requests_total/ })
})

t.test('the registry can be served', async (t) => {
  const registry = new Registry()
  const own = new Counter({ name: 'host_things_total', help: 'x', registers: [registry] })
  own.inc(3)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(metrics, { registry, path: '/internal/metrics' })
  const reply = await app.inject('/internal/metrics')
  t.equal(reply.headers['content-type'], registry.contentType)
  t.match(reply.body, 'host_things_total 3')
  t.match(reply.body, 'llm_gateway_build_info')
})

t.test('the global registry stays empty', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(metrics)
  t.equal(register.getMetricsAsArray().length, 0)
})
