import type { Span, Tracer, TracerProvider } from '@opentelemetry/api'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { checkMethods, checkOptions } from '../core/config/options.js'
import { joinGateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { identifyFirst } from '../core/call/identify.js'
import { otelApi } from '../core/telemetry/otel-api.js'
import { modelCallOf, type ModelCall } from '../core/call/model-call.js'
import { packageVersion, scopeName } from '../core/version.js'
import { endCallSpan, startCallSpan } from './call-span.js'
import { captureContent, capturesContent } from './content.js'
import { isSdkRegistered, parentContext, traceHeaders } from './propagate.js'

export interface TracingOptions {
  /**
   * The provider of the tracer.
   * @defaultValue the one that is registered with the API, whenever that happens
   */
  tracerProvider?: TracerProvider
  /**
   * Pass OpenTelemetry baggage on to upstreams.
   * @defaultValue false: it may hold what is not for third parties
   */
  baggage?: boolean
}

async function registerTracing (app: FastifyInstance, options: TracingOptions): Promise<void> {
  checkOptions('tracing', options, { 'an object': ['tracerProvider'], 'a boolean': ['baggage'] })
  const { tracerProvider, baggage = false } = options
  checkMethods('tracing.tracerProvider', tracerProvider, ['getTracer'])
  const gateway = joinGateway(app)
  let tracer: Tracer | null = null
  const withContent = capturesContent(process.env)
  const spans = new WeakMap<ModelCall, Span>()

  identifyFirst(app, gateway)

  app.addHook('preHandler', function llmGatewayTracing (request, _reply, done) {
    const llm = tracerProvider === undefined && !isSdkRegistered() ? null : modelCallOf(request)
    if (llm === null) {
      done()
      return
    }
    const { context, isSpanContextValid, propagation, trace } = otelApi()
    tracer ??= (tracerProvider ?? trace).getTracer(scopeName, packageVersion)
    const parent = parentContext(request)
    const { upstreams } = gateway.destinationOf(llm) ?? { upstreams: [] }
    const span = startCallSpan(tracer, llm, upstreams, parent)
    const ids = span.spanContext()
    // This provider makes no spans: the caller's trace headers are passed on unchanged.
    if (!isSpanContextValid(ids)) {
      done()
      return
    }
    const callContext = trace.setSpan(baggage ? parent : propagation.deleteBaggage(parent), span)
    llm.trace = { ids, context: callContext, headers: traceHeaders(callContext) }
    spans.set(llm, span)
    if (withContent && span.isRecording()) captureContent(span, llm, upstreams)
    context.with(callContext, done)
  })

  gateway.settlement.add('trace', (llm) => {
    const span = spans.get(llm)
    if (span !== undefined) endCallSpan(span, llm)
  })
}

/**
 * One span for each model call, from before it is sent to its settlement, by the GenAI conventions. Register it right before `forward`, or
 * before the host's mounts, so that hooks that refuse a request run first. Content is captured only if
 * OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for it; the variable is read at registration. Register `usage` before it.
 */
export const tracing: FastifyPluginAsync<TracingOptions> = gatewayPlugin('tracing', registerTracing)
