import { hasSubscribers } from 'node:diagnostics_channel'
import { propagation } from '@opentelemetry/api'

/**
 * Whether an instrumentation of the HTTP client will add trace headers to what is sent, by itself: it listens where undici
 * tells of new requests, and a propagator is registered. It appends and never replaces (facts/telemetry.md 6): whoever
 * sends a request must then leave these headers out, or the upstream gets two of each and reads neither.
 */
export function clientAddsTrace (): boolean {
  return hasSubscribers('undici:request:create') && propagation.fields().length > 0
}
