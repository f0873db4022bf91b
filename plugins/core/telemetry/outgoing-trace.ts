import { channel } from 'node:diagnostics_channel'
import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { isOtelInUse, otelApi } from './otel-api.js'
import type { ModelCall } from '../call/model-call.js'

// Kept: looking a channel up by its name costs more than everything else here.
const requestCreated = channel('undici:request:create')

/**
 * Whether an instrumentation of the HTTP client will add trace headers itself: it listens to undici's channel of new requests, and a
 * propagator is registered. It appends and never replaces: these headers must then be left out, or the upstream gets two of each and reads
 * neither.
 */
export function clientAddsTrace (): boolean {
  return requestCreated.hasSubscribers && isOtelInUse() && otelApi().propagation.fields().length > 0
}

/**
 * Makes a mount of the host send our trace in place of the caller's, and within our span's context, whichever its handler runs in. A mount
 * forwards a request's headers unchanged, so they are replaced in the request.
 */
export function sendTraced<T> ({ trace }: ModelCall, headers: IncomingHttpHeaders, send: () => T): T {
  if (trace === null || trace.headers === null) return send()
  for (const name of ['traceparent', 'tracestate', 'baggage']) delete headers[name]
  Object.assign(headers, trace.headers)
  return otelApi().context.with(trace.context, send)
}

/**
 * Sends a request within the context of our span, whichever its handler runs in: an instrumentation of Fastify gives each hook and handler
 * a context of its own, and the span of the HTTP client belongs below ours.
 */
export function dispatchTraced (
  client: Dispatcher, options: Dispatcher.DispatchOptions, { trace }: ModelCall, handler: Dispatcher.DispatchHandler
): void {
  if (trace === null) client.dispatch(options, handler)
  else otelApi().context.with(trace.context, client.dispatch, client, options, handler)
}
