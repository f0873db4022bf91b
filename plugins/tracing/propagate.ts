import { context, propagation, trace, type Context } from '@opentelemetry/api'
import { clientAddsTrace } from '../outgoing-trace.js'

type Carrier = Readonly<Record<string, unknown>>

/** The context that a call belongs to: the active span's, or, where nothing instruments the server, the caller's own. */
export function parentContext (headers: Carrier): Context {
  const active = context.active()
  return trace.getSpan(active) === undefined ? propagation.extract(active, headers) : active
}

/**
 * What carries `own` to the upstream, for `llm.traceHeaders`: nothing where the HTTP client's instrumentation does it,
 * and null, which leaves the caller's headers, where no propagator does.
 */
export function traceHeaders (own: Context): Record<string, string> | null {
  if (clientAddsTrace()) return {}
  const carrier: Record<string, string> = {}
  propagation.inject(own, carrier)
  return Object.keys(carrier).length === 0 ? null : carrier
}
