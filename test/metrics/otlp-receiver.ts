/** What a collector would take: OTLP/HTTP in JSON, metrics and spans. */
import { createServer } from 'node:http'
import type { Test } from 'tap'
import { listening } from '../helpers/listening.js'
import { Signal } from '../helpers/upstream.js'

interface Point {
  readonly asInt?: string | number
  readonly asDouble?: number
  readonly count?: string | number
}

export interface ReceivedMetric {
  readonly name: string
  readonly sum?: { readonly dataPoints: readonly Point[] }
  readonly gauge?: { readonly dataPoints: readonly Point[] }
  readonly histogram?: { readonly dataPoints: readonly Point[] }
}

export interface ReceivedSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly scope: string
}

/** What an export says of the process that it comes from. */
export type ResourceAttributes = Readonly<Record<string, string | undefined>>

interface SentResource {
  readonly attributes: ReadonlyArray<{ readonly key: string, readonly value: { readonly stringValue?: string } }>
}

interface Sent {
  readonly resourceMetrics?: ReadonlyArray<{
    readonly resource: SentResource
    readonly scopeMetrics: ReadonlyArray<{ readonly metrics: readonly ReceivedMetric[] }>
  }>
  readonly resourceSpans?: ReadonlyArray<{
    readonly scopeSpans: ReadonlyArray<{
      readonly scope: { readonly name: string }
      readonly spans: ReadonlyArray<Omit<ReceivedSpan, 'scope'>>
    }>
  }>
}

export interface Receiver {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string
  /** Each export of metrics. */
  readonly metrics: Signal<ReceivedMetric[]>
  /** The process of each of those. */
  readonly processes: Signal<ResourceAttributes>
  /** Each export of spans. */
  readonly spans: Signal<ReceivedSpan[]>
}

export async function startReceiver (t: Test): Promise<Receiver> {
  const metrics = new Signal<ReceivedMetric[]>()
  const processes = new Signal<ResourceAttributes>()
  const spans = new Signal<ReceivedSpan[]>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { resourceMetrics, resourceSpans }: Sent = JSON.parse(Buffer.concat(chunks).toString())
    if (request.url === '/v1/metrics' && resourceMetrics !== undefined) {
      for (const { resource } of resourceMetrics) {
        processes.push(Object.fromEntries(resource.attributes.map(({ key, value }) => [key, value.stringValue])))
      }
      metrics.push(resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics)))
    }
    if (request.url === '/v1/traces' && resourceSpans !== undefined) {
      const scopes = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans)
      spans.push(scopes.flatMap(({ scope, spans }) => spans.map((span) => ({ ...span, scope: scope.name }))))
    }
    response.setHeader('content-type', 'application/json')
    response.end('{}')
  })
  return { url: await listening(t, server), metrics, processes, spans }
}

/** All points of a metric together. */
export function totalOf (metrics: readonly ReceivedMetric[], name: string): number {
  const found = metrics.find((metric) => metric.name === name)
  const points = found?.sum?.dataPoints ?? found?.gauge?.dataPoints ?? found?.histogram?.dataPoints ?? []
  return points.reduce((sum, { asInt, asDouble, count }) => sum + Number(asInt ?? asDouble ?? count), 0)
}
