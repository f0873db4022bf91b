import * as successor from '@prometheus-io/client'
import Fastify from 'fastify'
import * as promClient from 'prom-client'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { openMetrics, plainText, renderText } from '../../plugins/metrics/exposition.js'
import { metrics } from '../../plugins/metrics/index.js'
import { joinRegistry, type MetricsRegistry } from '../../plugins/metrics/registry.js'
import { newMeters, samplesOf } from './meters.js'
import { noTokens, settledRequest } from './requests.js'

/** What the tests ask of a registry besides what the plugin does. */
interface Registry extends MetricsRegistry {
  clear: () => void
  resetMetrics: () => void
  getMetricsAsJSON: () => Promise<object[]>
}

interface Client {
  readonly name: string
  readonly newRegistry: () => Registry
  readonly newOpenMetrics: () => Registry
  /** Puts a counter of the host into it. */
  readonly count: (registry: Registry, name: string, amount: number) => void
  readonly global: Registry
  /** The text of what several processes have, as JSON. */
  readonly aggregated: (each: object[]) => Promise<string>
}

const clients: readonly Client[] = [
  {
    name: 'prom-client',
    newRegistry: () => new promClient.Registry(),
    newOpenMetrics () {
      const registry = new promClient.Registry<promClient.OpenMetricsContentType>()
      registry.setContentType(promClient.Registry.OPENMETRICS_CONTENT_TYPE)
      return registry
    },
    count (registry, name, amount) {
      const counter = new promClient.Counter({ name, help: 'x', registers: [] })
      counter.inc(amount)
      registry.registerMetric(counter)
    },
    global: promClient.register,
    aggregated: async (each) => await promClient.AggregatorRegistry.aggregate(each).metrics(),
  },
  {
    name: '@prometheus-io/client',
    newRegistry: () => new successor.Registry(),
    newOpenMetrics: () => new successor.Registry(successor.openMetricsContentType),
    count (registry, name, amount) {
      const counter = new successor.Counter({ name, help: 'x', registers: [] })
      counter.inc(amount)
      registry.registerMetric(counter)
    },
    global: successor.register,
    aggregated: async (each) => await successor.AggregatorRegistry.aggregate(each).metrics(),
  },
]

function filled () {
  const meters = newMeters()
  meters.recorder.settled(settledRequest({ usage: { tokens: { ...noTokens, input: 3, output: 4 } }, stream: true }))
  meters.recorder.keyLookedUp('miss', 0.002)
  return meters
}

for (const { name, newRegistry, newOpenMetrics, count, global, aggregated } of clients) {
  t.test(name, async (t) => {
    t.test('a registry shows the very samples of our own text', async (t) => {
      const { store } = filled()
      const registry = newRegistry()
      joinRegistry(registry, store.families)
      t.strictSame(samplesOf(await registry.metrics()), samplesOf(await renderText(store.families, plainText)))
      const json = await registry.getMetricsAsJSON()
      t.equal(json.length, store.families.length)
    })

    t.test('an OpenMetrics registry shows them too, at each scrape', async (t) => {
      const { store } = filled()
      const registry = newOpenMetrics()
      joinRegistry(registry, store.families)
      for (const scrape of [1, 2]) {
        const text = await registry.metrics()
        t.match(text, '# TYPE llm_gateway_key_lookups counter\nllm_gateway_key_lookups_total{result="', `scrape ${scrape}`)
        t.match(text, 'llm_gateway_key_lookups_total{result="miss"} 1', `scrape ${scrape}`)
        t.strictSame(samplesOf(text), samplesOf(await renderText(store.families, openMetrics)))
      }
    })

    t.test('two apps with one registry add up in the same cells', async (t) => {
      const registry = newRegistry()
      for (const name of ['one', 'two']) {
        const app = Fastify()
        t.teardown(() => app.close())
        await app.register(metrics, { registry })
        gatewayOf(app).recorder.authFailed('messages', 'unknown_key')
        t.equal((await app.inject('/metrics')).statusCode, 404, `${name}: the registry is served by its owner`)
      }
      t.equal(samplesOf(await registry.metrics()).get('llm_gateway_auth_failures_total{protocol="messages",reason="unknown_key"}'), 2)
    })

    t.test('a registry that was cleared is filled again', async (t) => {
      const registry = newRegistry()
      for (const name of ['one', 'two']) {
        registry.clear()
        const app = Fastify()
        t.teardown(() => app.close())
        await app.register(metrics, { registry })
        t.match(await registry.metrics(), 'llm_gateway_build_info{version="', name)
      }
    })

    t.test('a cluster of processes adds up what adds up, and takes the least or the greatest of all else', async (t) => {
      const each = await Promise.all([1, 2].map(async (value) => {
        const { recorder, store } = filled()
        recorder.gauge('balance_remaining_ratio', () => [{ labels: { group: 'x' }, value }])
        recorder.gauge('ledger_lag_seconds', () => [{ labels: {}, value }])
        const registry = newRegistry()
        joinRegistry(registry, store.families)
        return await registry.getMetricsAsJSON()
      }))
      t.match(Object.fromEntries(samplesOf(await aggregated(each))), {
        'llm_gateway_key_lookups_total{result="miss"}': 2,
        'llm_gateway_key_lookup_duration_seconds_bucket{result="miss",le="0.0025"}': 2,
        'llm_gateway_balance_remaining_ratio{group="x"}': 1,
        llm_gateway_ledger_lag_seconds: 2,
      })
    })

    t.test('a reset of the registry takes no count back', async (t) => {
      const { store } = filled()
      const registry = newRegistry()
      joinRegistry(registry, store.families)
      registry.resetMetrics()
      t.equal(samplesOf(await registry.metrics()).get('llm_gateway_key_lookups_total{result="miss"}'), 1)
    })

    t.test('a foreign metric of one of our names is an error that says so', async (t) => {
      const registry = newRegistry()
      count(registry, 'llm_gateway_requests_total', 1)
      const app = Fastify()
      t.teardown(() => app.close())
      await t.rejects(async () => await app.register(metrics, { registry }), {
        code: 'LLM_GATEWAY_OPTION', message: /metrics.registry already holds .*llm_gateway_requests_total/,
      })
    })

    t.test('the registry can be served', async (t) => {
      const registry = newRegistry()
      count(registry, 'host_things_total', 3)
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
      t.strictSame(await global.getMetricsAsJSON(), [])
    })
  })
}
