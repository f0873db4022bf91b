import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '@opentelemetry/api'
import { isOtelInUse, otelApi } from '../core/telemetry/otel-api.js'
import { clientAddsTrace } from '../core/telemetry/outgoing-trace.js'

/** False while no SDK is registered with the API; nothing more need be asked then. */
export function isSdkRegistered (): boolean {
  if (!isOtelInUse()) return false
  const { ProxyTracerProvider, trace } = otelApi()
  const provider = trace.getTracerProvider()
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegate() !== new ProxyTracerProvider().getDelegate()
}

/** What `@fastify/otel` adds to a request: its span's context, which no hook or handler of the app hides. */
interface Instrumented {
  readonly opentelemetry?: () => { readonly context: Context | null }
  readonly raw: { readonly headers: IncomingHttpHeaders }
}

/**
 * The parent context of a call: that of the request's span if Fastify is instrumented (the active one is then that of our own hook), else
 * that of the active span or, if nothing instruments the server, the caller's.
 */
export function parentContext (request: Instrumented): Context {
  const { context, propagation, trace } = otelApi()
  const active = request.opentelemetry?.().context ?? context.active()
  return trace.getSpan(active) === undefined ? propagation.extract(active, request.raw.headers) : active
}

/**
 * Headers that carry `context` to the upstream, for `llm.trace.headers`: none if the instrumentation of the HTTP client adds them; null,
 * which keeps the caller's headers, if no propagator does.
 */
export function traceHeaders (context: Context): Record<string, string> | null {
  if (clientAddsTrace()) return {}
  const carrier: Record<string, string> = {}
  otelApi().propagation.inject(context, carrier)
  return Object.keys(carrier).length === 0 ? null : carrier
}
