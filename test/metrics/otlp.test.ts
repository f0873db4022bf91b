import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import t from 'tap'
import { listen, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { samplesOf, sumOf } from './meters.js'
import { startReceiver, totalOf } from './otlp-receiver.js'
import { sendTraffic } from './traffic.js'

t.test('a collector gets the totals that a scrape has', async (t) => {
  const { url, metrics } = await startReceiver(t)
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ url: `${url}/v1/metrics` }), exportIntervalMillis: 3_600_000,
  })
  const provider = new MeterProvider({ readers: [reader] })
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, upstream.url, { metrics: { meterProvider: provider, semconv: 'both' } })
  const { settled } = await sendTraffic(gateway, await listen(gateway.app), upstream)
  await provider.forceFlush()
  const received = await metrics.next()
  const samples = samplesOf((await gateway.app.inject('/metrics')).body)

  const all = Object.values(upstream.totals).flatMap((leaves) => Object.values(leaves))
  const reported = all.reduce((sum, tokens) => sum + tokens, 0)
  t.equal(totalOf(received, 'llm_gateway.tokens'), reported)
  t.equal(sumOf(samples, 'llm_gateway_tokens_total'), reported)
  t.equal(totalOf(received, 'llm_gateway.requests'), settled.length)
  t.equal(sumOf(samples, 'llm_gateway_requests_total'), settled.length)
  t.equal(totalOf(received, 'llm_gateway.request_duration'), settled.length)
  t.equal(totalOf(received, 'llm_gateway.overhead'), sumOf(samples, 'llm_gateway_overhead_seconds_count'))
  t.equal(
    totalOf(received, 'gen_ai.client.inference.usage.input_tokens') + totalOf(received, 'gen_ai.client.inference.usage.output_tokens'),
    reported - Number(upstream.totals['embeddings']?.input), 'without embeddings'
  )
  await provider.shutdown()
})
