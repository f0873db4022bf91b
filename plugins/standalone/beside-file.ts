/** Paths in a configuration are relative to its file, wherever the process was started. */
import { dirname, resolve } from 'node:path'
import type { GatewayConfig, UpstreamEntry } from './config-types.js'

type Place = (path: string) => string
type State = NonNullable<GatewayConfig['state']>
type Validation = NonNullable<GatewayConfig['validation']>

/** Except `state.path`: what a process writes is relative to its working folder. `file`: path of the configuration. */
export function besideFile (config: GatewayConfig, file: string): GatewayConfig {
  const { prices, state, upstreams, validation } = config
  const place: Place = (path) => resolve(dirname(file), path)
  return {
    ...config,
    upstreams: Object.fromEntries(Object.entries(upstreams).map(([name, entry]) => [name, upstreamAt(entry, place)])),
    ...prices?.files && { prices: { ...prices, files: prices.files.map(place) } },
    ...state && { state: stateAt(state, place) },
    ...validation?.schemas && { validation: { ...validation, schemas: schemasAt(validation.schemas, place) } },
  }
}

function upstreamAt (entry: UpstreamEntry, place: Place): UpstreamEntry {
  if (entry.simulate || typeof entry.credential !== 'object') return entry
  return { ...entry, credential: { file: place(entry.credential.file) } }
}

function stateAt (state: State, place: Place): State {
  const { sentinel, usageStore } = state
  return {
    ...withPasswordAt(state, place),
    ...sentinel && { sentinel: withPasswordAt(sentinel, place) },
    ...usageStore && { usageStore: withPasswordAt(usageStore, place) },
  }
}

function withPasswordAt<T extends { readonly password?: { readonly file: string } }> (holder: T, place: Place): T {
  const { password } = holder
  return password === undefined ? holder : { ...holder, password: { file: place(password.file) } }
}

function schemasAt (schemas: NonNullable<Validation['schemas']>, place: Place): NonNullable<Validation['schemas']> {
  return Object.fromEntries(Object.entries(schemas).map(([name, source]) => [name, typeof source === 'string' ? place(source) : source]))
}
