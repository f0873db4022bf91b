/** A tracing SDK with real instrumentations, switched on and off within one process. */
import { createRequire } from 'node:module'
import { FastifyOtelInstrumentation } from '@fastify/otel'
import { context, propagation, trace } from '@opentelemetry/api'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor, type ReadableSpan } from '@opentelemetry/sdk-trace-node'
import type { Test } from 'tap'

// One of each in a process, and made before anything else asks for the module: it hears of a module only once.
const httpInstrumentation = new HttpInstrumentation({ redactedQueryParamsServer: ['key'] })
const undiciInstrumentation = new UndiciInstrumentation()
createRequire(import.meta.url)('http')
const fastifyInstrumentation = new FastifyOtelInstrumentation({ registerOnInitialization: true })
httpInstrumentation.disable()
undiciInstrumentation.disable()
fastifyInstrumentation.disable()

export interface Setup {
  readonly sdk: boolean
  readonly http: boolean
  readonly undici: boolean
  /** Apps that are made from now on are instrumented. */
  readonly fastify?: boolean
}

export interface Spans {
  /** Finished spans, oldest first. */
  readonly finished: () => ReadableSpan[]
  readonly provider: NodeTracerProvider
}

export function startTracing (t: Test, { sdk, http, undici, fastify = false }: Setup): Spans {
  const exporter = new InMemorySpanExporter()
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  if (sdk) provider.register()
  const instrumentations = [
    ...http ? [httpInstrumentation] : [], ...undici ? [undiciInstrumentation] : [], ...fastify ? [fastifyInstrumentation] : [],
  ]
  for (const instrumentation of instrumentations) {
    instrumentation.setTracerProvider(trace.getTracerProvider())
    instrumentation.enable()
  }
  t.teardown(async () => {
    for (const instrumentation of instrumentations) instrumentation.disable()
    trace.disable()
    context.disable()
    propagation.disable()
    await provider.shutdown()
  })
  return { finished: () => exporter.getFinishedSpans(), provider }
}

export function scopeOf (span: ReadableSpan): string {
  return span.instrumentationScope.name.replace('@opentelemetry/instrumentation-', '')
}
