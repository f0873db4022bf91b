import { channel } from 'node:diagnostics_channel'
import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { isOtelInUse, otelApi } from './otel-api.js'
import type { ModelCall } from '../call/model-call.js'

// Held: to look a channel up by its name costs more than all else here.
const requestCreated = channel('undici:request:create')

/**
 * Whether an instrumentation of the HTTP client will add trace headers to what is sent, by itself: it listens where undici
 * tells of new requests, and a propagator is registered. It appends and never replaces: whoever
 * sends a request must then leave these headers out, or the upstream gets two of each and reads neither.
 */
export function clientAddsTrace (): boolean {
  return requestCreated.hasSubscribers && isOtelInUse() && otelApi().propagation.fields().length > 0
}

/**
 * Has a mount of the host's send our trace in the place of the caller's, and within our span's context, whichever its handler
 * runs in. A mount forwards the headers of a request as they are, so the request has ours from here on.
 */
export function sendTraced<T> ({ trace }: ModelCall, headers: IncomingHttpHeaders, send: () => T): T {
  if (trace === null || trace.headers === null) return send()
  for (const name of ['traceparent', 'tracestate', 'baggage']) delete headers[name]
  Object.assign(headers, trace.headers)
  return otelApi().context.with(trace.context, send)
}

/**
 * Sends a request within the context of our span, whichever a handler was run in: an instrumentation of Fastify gives
 * each hook and handler a context of its own, and the span of the HTTP client belongs below ours.
 */
export function dispatchTraced (
  client: Dispatcher, options: Dispatcher.DispatchOptions, { trace }: ModelCall, handler: Dispatcher.DispatchHandler
): void {
  if (trace === null) client.dispatch(options, handler)
  else otelApi().context.with(trace.context, client.dispatch, client, options, handler)
}
