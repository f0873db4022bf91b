import { createServer } from 'node:http'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import t, { type Test } from 'tap'
import { listen, startGateway } from '../helpers/gateway.js'
import { Signal, startUpstream } from '../helpers/upstream.js'
import { samplesOf, sumOf } from './meters.js'
import { sendTraffic } from './traffic.js'

interface Point {
  readonly asInt?: string | number
  readonly asDouble?: number
  readonly count?: string | number
}

interface Received {
  readonly name: string
  readonly sum?: { readonly dataPoints: readonly Point[] }
  readonly gauge?: { readonly dataPoints: readonly Point[] }
  readonly histogram?: { readonly dataPoints: readonly Point[] }
}

interface Export {
  readonly resourceMetrics: ReadonlyArray<{ readonly scopeMetrics: ReadonlyArray<{ readonly metrics: readonly Received[] }> }>
}

/** Takes OTLP/HTTP in JSON, as a collector would. */
async function startReceiver (t: Test): Promise<{ url: string, exports: Signal<Received[]> }> {
  const exports = new Signal<Received[]>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const sent: Export = JSON.parse(Buffer.concat(chunks).toString())
    exports.push(sent.resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics)))
    response.setHeader('content-type', 'application/json')
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  return { url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/v1/metrics`, exports }
}

function totalOf (metrics: readonly Received[], name: string): number {
  const found = metrics.find((metric) => metric.name === name)
  const points = found?.sum?.dataPoints ?? found?.gauge?.dataPoints ?? found?.histogram?.dataPoints ?? []
  return points.reduce((sum, { asInt, asDouble, count }) => sum + Number(asInt ?? asDouble ?? count), 0)
}

t.test('a collector gets the totals that a scrape has', async (t) => {
  const { url, exports } = await startReceiver(t)
  const reader = new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter({ url }), exportIntervalMillis: 3_600_000 })
  const provider = new MeterProvider({ readers: [reader] })
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, upstream.url, { metrics: { meterProvider: provider, semconv: 'both' } })
  const { settled } = await sendTraffic(gateway, await listen(gateway.app), upstream)
  await provider.forceFlush()
  const received = await exports.next()
  const samples = samplesOf((await gateway.app.inject('/metrics')).body)

  const reported = Object.values(upstream.totals).flatMap((leaves) => Object.values(leaves)).reduce((sum, tokens) => sum + tokens, 0)
  t.equal(totalOf(received, 'llm_gateway.tokens'), reported)
  t.equal(sumOf(samples, 'llm_gateway_tokens_total'), reported)
  t.equal(totalOf(received, 'llm_gateway.requests'), settled.length)
  t.equal(sumOf(samples, 'llm_gateway_requests_total'), settled.length)
  t.equal(totalOf(received, 'llm_gateway.request_duration'), settled.length)
  t.equal(totalOf(received, 'llm_gateway.overhead'), sumOf(samples, 'llm_gateway_overhead_seconds_count'))
  t.equal(
    totalOf(received, 'gen_ai.client.inference.usage.input_tokens') + totalOf(received, 'gen_ai.client.inference.usage.output_tokens'),
    reported
  )
  await provider.shutdown()
})
