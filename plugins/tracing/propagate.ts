import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '@opentelemetry/api'
import { isOtelInUse, otelApi } from '../core/telemetry/otel-api.js'
import { clientAddsTrace } from '../core/telemetry/outgoing-trace.js'

/** False as long as the API has nobody to give spans to, and no more need be asked. */
export function isSdkRegistered (): boolean {
  if (!isOtelInUse()) return false
  const { ProxyTracerProvider, trace } = otelApi()
  const provider = trace.getTracerProvider()
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegate() !== new ProxyTracerProvider().getDelegate()
}

/** What `@fastify/otel` adds to a request: its span's context, which no hook and no handler of the app hides. */
interface Instrumented {
  readonly opentelemetry?: () => { readonly context: Context | null }
  readonly raw: { readonly headers: IncomingHttpHeaders }
}

/**
 * The context that a call belongs to: that of the span of the request where Fastify is instrumented (the active one is
 * that of our own hook then), else the active span's, or, where nothing instruments the server, the caller's own.
 */
export function parentContext (request: Instrumented): Context {
  const { context, propagation, trace } = otelApi()
  const active = request.opentelemetry?.().context ?? context.active()
  return trace.getSpan(active) === undefined ? propagation.extract(active, request.raw.headers) : active
}

/**
 * What carries `own` to the upstream, for `llm.trace.headers`: nothing where the HTTP client's instrumentation does it,
 * and null, which leaves the caller's headers, where no propagator does.
 */
export function traceHeaders (own: Context): Record<string, string> | null {
  if (clientAddsTrace()) return {}
  const carrier: Record<string, string> = {}
  otelApi().propagation.inject(own, carrier)
  return Object.keys(carrier).length === 0 ? null : carrier
}
