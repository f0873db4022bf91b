/** The OpenTelemetry API, loaded on use: an app without an SDK would load it for nothing at every start. */
import { createRequire } from 'node:module'
import type * as Api from '@opentelemetry/api'

const require = createRequire(import.meta.url)

/** Where every copy of the API keeps what is registered with it, by its major version (its `internal/global-utils`). */
const registered = Symbol.for('opentelemetry.js.api.1')

let loaded: typeof Api | null = null

/** False while nothing is registered with the API, so that calling it would have no effect. */
export function isOtelInUse (): boolean {
  return registered in globalThis
}

export function otelApi (): typeof Api {
  const api: typeof Api = loaded ?? require('@opentelemetry/api')
  loaded = api
  return api
}
