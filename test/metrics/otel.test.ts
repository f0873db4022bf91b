import { metrics as api, ProxyTracerProvider, trace } from '@opentelemetry/api'
import {
  AggregationTemporality, createAllowListAttributesProcessor, DataPointType, InMemoryMetricExporter, MeterProvider,
  PeriodicExportingMetricReader, type MetricData, type ViewOptions,
} from '@opentelemetry/sdk-metrics'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { advisedBounds } from '../../plugins/core/telemetry/genai.js'
import { catalogue } from '../../plugins/metrics/catalogue.js'
import { metrics, type MetricsOptions } from '../../plugins/metrics/index.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { call as send, listen, read, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { samplesOf, sumOf } from './meters.js'
import { groupOf, noTokens, settledRequest } from './requests.js'

interface Sdk {
  readonly provider: MeterProvider
  readonly collect: () => Promise<Map<string, MetricData>>
}

function newSdk (t: Test, views: ViewOptions[] = []): Sdk {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const provider = new MeterProvider({ readers: [reader], views })
  t.teardown(() => provider.shutdown())
  return {
    provider,
    collect: async () => {
      exporter.reset()
      await provider.forceFlush()
      const scopes = exporter.getMetrics().flatMap((resource) => resource.scopeMetrics)
      return new Map(scopes.flatMap((scope) => scope.metrics).map((metric) => [metric.descriptor.name, metric]))
    },
  }
}

async function start (t: Test, options: MetricsOptions): Promise<FastifyInstance> {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(metrics, options)
  await app.ready()
  return app
}

function pass (app: FastifyInstance, llm: ModelCall): void {
  gatewayOf(app).recorder.started(llm)
  gatewayOf(app).recorder.settled(llm)
}

/** All points of a metric: attributes to value, for histograms to count and sum. */
function pointsOf (metric: MetricData | undefined): Array<[Record<string, unknown>, unknown]> {
  return (metric?.dataPoints ?? []).map(({ attributes, value }) => {
    if (typeof value === 'number') return [attributes, value]
    return [attributes, { count: value.count, sum: 'sum' in value ? value.sum : undefined }]
  })
}

function boundsOf (value: object): unknown {
  return 'buckets' in value ? Object(value.buckets).boundaries : undefined
}

const usage = { ...noTokens, input: 10, cache_read: 5, cache_write_5m: 2, output: 20, reasoning: 7 }
const call = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'gpt-5' }

t.test('both projections tell the same', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider })
  pass(app, settledRequest({ usage: { tokens: usage }, stream: true }))
  pass(app, settledRequest({ usage: { tokens: usage }, stream: true, abortedBy: 'client', outcome: 'client_abort' }))
  const samples = samplesOf((await app.inject('/metrics')).body)
  const collected = await collect()
  for (const [name, row] of Object.entries(catalogue)) {
    const points = collected.get(`llm_gateway.${name.replace(/_(total|seconds|ratio)$/, '')}`)?.dataPoints ?? []
    const values = points.map(({ value }) => typeof value === 'number' ? value : value.count)
    const sum = values.reduce((total, value) => total + value, 0)
    t.equal(sum, sumOf(samples, row.type === 'histogram' ? `llm_gateway_${name}_count` : `llm_gateway_${name}`), name)
  }
  t.strictSame(pointsOf(collected.get('llm_gateway.active_requests')), [[{ protocol: 'chat_completions' }, 0]])
  t.equal(collected.get('llm_gateway.overhead')?.descriptor.unit, 's')
  const [{ value: durations } = { value: 0 }] = collected.get('llm_gateway.request_duration')?.dataPoints ?? []
  t.strictSame(boundsOf(Object(durations)), catalogue.request_duration_seconds.buckets)
  t.equal(collected.get('llm_gateway.tokens')?.descriptor.unit, '{token}')
  t.equal(collected.get('llm_gateway.active_requests')?.dataPointType, DataPointType.SUM)
  t.equal(collected.get('llm_gateway.build_info')?.dataPointType, DataPointType.GAUGE)
})

/** As OpenTelemetry Collector and Prometheus name what they get over OTLP (pkg.go.dev/github.com/prometheus/otlptranslator). */
function translated ({ descriptor: { name, unit }, dataPointType, ...metric }: MetricData): string {
  const isTotal = 'isMonotonic' in metric && metric.isMonotonic
  const isShare = unit === '1' && dataPointType === DataPointType.GAUGE
  return name.replaceAll('.', '_') + (unit === 's' ? '_seconds' : '') + (isTotal ? '_total' : '') + (isShare ? '_ratio' : '')
}

t.test('whoever translates the instruments makes the names of a scrape of them', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider })
  pass(app, settledRequest({ usage: { tokens: usage }, stream: true }))
  const { recorder } = gatewayOf(app)
  recorder.gauge('upstream_available', () => [{ labels: { upstream: 'main' }, value: 1 }])
  recorder.gauge('upstream_active_requests', () => [{ labels: { upstream: 'main' }, value: 1 }])
  recorder.gauge('model_aliases', () => [{ labels: { upstream: 'main', model: 'a', sent_as: 'b' }, value: 1 }])
  recorder.gauge('balance_remaining_ratio', () => [{ labels: { group: 'chat' }, value: 1 }])
  recorder.gauge('ledger_lag_seconds', () => [{ labels: {}, value: 1 }])
  const names = [...await collect()].filter(([name]) => name.startsWith('llm_gateway.')).map(([, metric]) => translated(metric))
  t.same(names.filter((name) => !Object.hasOwn(catalogue, name.replace('llm_gateway_', ''))), [])
  for (const name of ['upstream_available', 'model_aliases', 'balance_remaining_ratio', 'ledger_lag_seconds', 'build_info']) {
    t.ok(names.includes(`llm_gateway_${name}`), name)
  }
})

t.test('an app that nobody has asked yet tells what it holds', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider })
  gatewayOf(app).recorder.gauge('upstream_available', () => [{ labels: { upstream: 'main' }, value: 1 }])
  const collected = await collect()
  t.strictSame(pointsOf(collected.get('llm_gateway.upstream_available')), [[{ upstream: 'main' }, 1]])
  t.notOk(collected.has('llm_gateway.shed'), 'a counter begins with its first event')
})

t.test('an SDK that is registered after the app is ready gets everything that was counted', async (t) => {
  const app = await start(t, {})
  pass(app, settledRequest({ usage: { tokens: usage } }))
  const { provider, collect } = newSdk(t)
  api.setGlobalMeterProvider(provider)
  t.teardown(() => api.disable())
  pass(app, settledRequest({ usage: { tokens: usage } }))
  const collected = await collect()
  t.equal(pointsOf(collected.get('llm_gateway.requests'))[0]?.[1], 2)
  t.match(pointsOf(collected.get('llm_gateway.request_duration'))[0]?.[1], { count: 1 }, 'durations count from then on')
})

t.test('an SDK for metrics may come after one for traces', async (t) => {
  trace.setGlobalTracerProvider(new ProxyTracerProvider())
  t.teardown(() => trace.disable())
  const app = await start(t, {})
  pass(app, settledRequest())
  const { provider, collect } = newSdk(t)
  api.setGlobalMeterProvider(provider)
  t.teardown(() => api.disable())
  pass(app, settledRequest())
  t.equal(pointsOf((await collect()).get('llm_gateway.requests'))[0]?.[1], 2)
})

t.test('nothing is shown where it is not wanted', async (t) => {
  const { provider, collect } = newSdk(t)
  api.setGlobalMeterProvider(provider)
  t.teardown(() => api.disable())
  const app = await start(t, { openTelemetry: false })
  pass(app, settledRequest({ usage: { tokens: usage } }))
  t.equal((await collect()).size, 0)
})

t.test('two apps of one process add up', async (t) => {
  const { provider, collect } = newSdk(t)
  for (const balance of [0.5, 0.25]) {
    const app = await start(t, { meterProvider: provider })
    pass(app, settledRequest())
    gatewayOf(app).recorder.gauge('balance_remaining_ratio', () => [{ labels: { group: 'chat' }, value: balance }])
  }
  const collected = await collect()
  t.equal(pointsOf(collected.get('llm_gateway.requests'))[0]?.[1], 2)
  t.equal(pointsOf(collected.get('llm_gateway.balance_remaining'))[0]?.[1], 0.25, 'the least balance')
  t.equal(pointsOf(collected.get('llm_gateway.build_info'))[0]?.[1], 1)
})

t.test('label sets beyond those that an SDK tells apart are told together, and stand where nothing happens', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider })
  const tokensOf = async () => {
    const points = pointsOf((await collect()).get('llm_gateway.tokens'))
    t.strictSame(points.at(-1)?.[0], { 'otel.metric.overflow': true })
    return { points: points.length, sum: points.reduce((sum, [, value]) => sum + Number(value), 0) }
  }
  const leaves = Object.keys(usage).length
  const groups = 2_000 / leaves + 10
  for (let round = 1; round < 3; round += 1) {
    for (let step = 0; step < groups; step += 1) {
      const at = round === 1 ? step : groups - 1 - step
      const tokens = Object.fromEntries(Object.keys(usage).map((leaf) => [leaf, at + round])) as typeof usage
      pass(app, settledRequest({ auth: { group: groupOf(`g${at}`) }, usage: { tokens } }))
    }
    const sum = sumOf(samplesOf((await app.inject('/metrics')).body), 'llm_gateway_tokens_total')
    for (const turn of [1, 2]) t.strictSame(await tokensOf(), { points: 2_000, sum }, `${round}, ${turn}`)
  }
})

t.test('so are those of a gauge', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider, maxCells: 3_000 })
  const samples = Array.from({ length: 2_010 }, (_, at) => ({ labels: { upstream: `u${at}` }, value: 2 }))
  gatewayOf(app).recorder.gauge('upstream_active_requests', () => samples)
  for (const turn of [1, 2]) {
    const points = pointsOf((await collect()).get('llm_gateway.upstream_active_requests'))
    t.strictSame([points.length, points.at(-1)], [2_000, [{ 'otel.metric.overflow': true }, 22]], String(turn))
  }
})

const millisOf = ([seconds, nanos]: [number, number]): number => seconds * 1_000 + nanos / 1_000_000

t.test('a counter tells that it counts since its first event, and not since it was read', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider })
  pass(app, settledRequest({ usage: { tokens: usage } }))
  const counted = Date.now()
  while (Date.now() === counted) await new Promise(setImmediate)
  const collected = await collect()
  for (const name of ['requests', 'tokens', 'upstream_responses']) {
    const points = collected.get(`llm_gateway.${name}`)?.dataPoints ?? []
    t.ok(points.length > 0, name)
    for (const { startTime, endTime } of points) t.ok(millisOf(startTime) < millisOf(endTime), name)
  }
})

t.test('a view that drops labels of a counter adds up what becomes one', async (t) => {
  const views = [{ instrumentName: 'llm_gateway.tokens', attributesProcessors: [createAllowListAttributesProcessor(['direction'])] }]
  const { provider, collect } = newSdk(t, views)
  const app = await start(t, { meterProvider: provider })
  pass(app, settledRequest({ usage: { tokens: usage } }))
  pass(app, settledRequest({ usage: { tokens: usage }, auth: { group: groupOf('other') } }))
  t.strictSame(pointsOf((await collect()).get('llm_gateway.tokens')), [[{ direction: 'input' }, 34], [{ direction: 'output' }, 54]])
})

t.test('GenAI metrics of the published conventions', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider })
  pass(app, settledRequest({ usage: { tokens: usage }, stream: true }))
  pass(app, settledRequest({ outcome: 'upstream_error', upstreamReply: { status: 503 } }))
  pass(app, settledRequest({ outcome: 'timeout', upstreamReply: { status: 0 }, errorCode: 'upstream_timeout' }))
  pass(app, settledRequest({ outcome: 'client_abort', model: null }))
  const collected = await collect()
  t.match(pointsOf(collected.get('gen_ai.client.token.usage')), [
    [{ ...call, 'gen_ai.token.type': 'input' }, { count: 1, sum: 17 }],
    [{ ...call, 'gen_ai.token.type': 'output' }, { count: 1, sum: 27 }],
  ])
  const durations = pointsOf(collected.get('gen_ai.client.operation.duration'))
  const unnamed = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai' }
  t.match(durations, [
    [call, { count: 1 }],
    [{ ...call, 'error.type': '503' }, { count: 1 }],
    [{ ...call, 'error.type': 'upstream_timeout' }, { count: 1 }],
    [{ ...unnamed, 'error.type': 'client_abort' }, { count: 1 }],
  ])
  t.notOk('gen_ai.request.model' in (durations[3]?.[0] ?? {}))
  t.match(pointsOf(collected.get('gen_ai.client.operation.time_to_first_chunk')), [[call, { count: 1 }]])
  t.notOk([...collected.keys()].some((name) => name.includes('inference')))
})

t.test('GenAI metrics as they will be', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider, semconv: 'next' })
  const modalities = [
    { direction: 'input' as const, modality: 'image', tokens: 3 },
    { direction: 'input' as const, modality: 'audio', tokens: 2 },
    { direction: 'input' as const, modality: 'document', tokens: 4 },
    { direction: 'output' as const, modality: 'text', tokens: 27 },
  ]
  pass(app, settledRequest({ usage: { tokens: { ...usage, cache_write: 1, cache_write_1h: 4 }, modalities } }))
  pass(app, settledRequest())
  const collected = await collect()
  const inference = (name: string) => pointsOf(collected.get(`gen_ai.client.inference.${name}`))
  const of = (modality: string) => ({ ...call, 'gen_ai.token.modality': modality })
  t.strictSame(inference('usage.input_tokens'), [[of('image'), 3], [of('audio'), 2], [of('unknown'), 17]])
  t.strictSame(inference('usage.output_tokens'), [[of('text'), 27], [of('unknown'), 0]])
  t.strictSame(inference('usage.cache_read.input_tokens'), [[of('unknown'), 5]])
  t.strictSame(inference('usage.cache_write.input_tokens'), [[of('unknown'), 7]])
  t.strictSame(inference('usage.reasoning.output_tokens'), [[of('unknown'), 7]])
  t.match(inference('operation.input_tokens'), [[call, { count: 1, sum: 22 }]])
  t.match(inference('operation.output_tokens'), [[call, { count: 1, sum: 27 }]])
  t.match(inference('duration'), [[call, { count: 2 }]])
  t.notOk(collected.has('gen_ai.client.token.usage'))
  t.notOk(collected.has('gen_ai.client.operation.duration'))
})

t.test('embeddings have metrics of their own among them', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider, semconv: 'next' })
  pass(app, settledRequest({ endpoint: 'embeddings', usage: { tokens: { ...noTokens, input: 8 } } }))
  pass(app, settledRequest({ endpoint: 'embeddings', outcome: 'upstream_error', upstreamReply: { status: 503 } }))
  const collected = [...await collect()].filter(([name]) => name.startsWith('gen_ai'))
  const shared = { ...call, 'gen_ai.operation.name': 'embeddings' }
  t.match(collected.map(([name, metric]) => [name, pointsOf(metric)]), [
    ['gen_ai.client.embeddings.duration', [[shared, { count: 1 }], [{ ...shared, 'error.type': '503' }, { count: 1 }]]],
    ['gen_ai.client.embeddings.operation.input_tokens', [[shared, { count: 1, sum: 8 }]]],
  ])
  t.equal(collected.length, 2)
})

t.test('the time to the first chunk has its next name with the next ones', async (t) => {
  const { provider, collect } = newSdk(t)
  pass(await start(t, { meterProvider: provider, semconv: 'both' }), settledRequest({ stream: true }))
  const collected = await collect()
  for (const name of ['operation', 'inference']) {
    t.match(pointsOf(collected.get(`gen_ai.client.${name}.time_to_first_chunk`)), [[call, { count: 1 }]], name)
  }
})

t.test('GenAI metrics have the units and bounds that the conventions advise', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider, semconv: 'both' })
  for (const endpoint of ['chat_completions', 'embeddings']) pass(app, settledRequest({ endpoint, usage: { tokens: usage }, stream: true }))
  const collected = [...await collect()].filter(([name]) => name.startsWith('gen_ai'))
  t.equal(collected.length, 14)
  for (const [name, { descriptor: { unit }, dataPoints }] of collected) {
    const isTime = /duration|time_to/.test(name)
    t.equal(unit, isTime ? 's' : '{token}', name)
    for (const { value, attributes } of dataPoints) {
      t.notOk('error.type' in attributes, name)
      if (typeof value === 'object') t.strictSame(boundsOf(value), isTime ? advisedBounds.duration : advisedBounds.tokens, name)
    }
  }
})

t.test('semconv both adds both sets of GenAI metrics, and off adds none', async (t) => {
  for (const [semconv, legacy, next] of [['both', true, true], ['off', false, false]] as const) {
    const { provider, collect } = newSdk(t)
    const app = await start(t, { meterProvider: provider, semconv })
    pass(app, settledRequest({ usage: { tokens: usage } }))
    const collected = await collect()
    t.equal(collected.has('gen_ai.client.token.usage'), legacy, semconv)
    t.equal(collected.has('gen_ai.client.inference.usage.input_tokens'), next, semconv)
    t.ok(collected.has('llm_gateway.requests'), semconv)
  }
})

t.test('what never went to a provider, or consumes no tokens, is no model call', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider, semconv: 'both' })
  pass(app, settledRequest({ at: { sent: 0 }, outcome: 'auth_error', upstreamReply: { status: 0 } }))
  pass(app, settledRequest({ endpoint: 'messages.count_tokens' }))
  t.notOk([...(await collect()).keys()].some((name) => name.startsWith('gen_ai')))
})

t.test('a whole reply of an upstream is over with its last byte, however long its caller takes it, that of an error, too', async (t) => {
  const { provider, collect } = newSdk(t)
  const app = await start(t, { meterProvider: provider })
  const at = { sent: 100, lastChunk: 600, ended: 9_000 }
  pass(app, settledRequest({ at }))
  pass(app, settledRequest({ at, outcome: 'client_error', status: 429, upstreamReply: { status: 429 } }))
  const seconds = pointsOf((await collect()).get('gen_ai.client.operation.duration')).map(([, value]) => Object(value).sum.toFixed(3))
  t.strictSame(seconds, ['0.500', '0.500'])
})

t.test('a call lasts until it failed, also where no reply came', async (t) => {
  const { provider, collect } = newSdk(t)
  const upstream = await startUpstream(t)
  const waitMs = 200
  const { app, settled } = await startGateway(t, upstream.url, {
    metrics: { meterProvider: provider }, forward: { headersTimeoutMs: waitMs, idleTimeoutMs: waitMs },
  })
  const url = `${await listen(app)}/v1/chat/completions`
  for (const stallAt of ['headers', 0] as const) {
    upstream.queue({ stallAt })
    await read(await send(url, { body: '{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]}' }).reply).catch(() => {})
    t.match(await settled.next(), { times: { firstChunkAt: 0 } })
  }
  const { dataPoints = [] } = (await collect()).get('gen_ai.client.operation.duration') ?? {}
  const seconds = dataPoints.map(({ value }) => typeof value === 'object' && 'sum' in value ? Number(value.sum) : 0)
  // Undici's timers may be early, by half a second at most of longer ones.
  t.ok(seconds.reduce((sum, value) => sum + value, 0) >= waitMs / 1_000, String(seconds))
})
