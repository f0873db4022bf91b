/** `gateway.yaml` as `schemas/gateway.schema.json` lets it through. */
import type { GroupOptions, KeyOptions } from '../auth/index.js'

export interface ListenEntry {
  readonly host?: string
  readonly port?: number
  readonly requestTimeoutMs?: number
  readonly shutdownGraceMs?: number
}

export type UpstreamEntry =
  | { readonly simulate: true }
  | { readonly url: string, readonly credential: string, readonly simulate?: never }

export interface StateEntry {
  readonly engine: 'memory' | 'lmdb' | 'redis'
  readonly path?: string
  readonly url?: string
}

export interface MetricsEntry {
  readonly path?: string
  readonly models?: readonly string[]
}

export interface LogEntry {
  readonly level?: string
}

export interface GatewayConfig {
  readonly listen?: ListenEntry
  readonly upstreams: Readonly<Record<string, UpstreamEntry>>
  readonly groups: Record<string, GroupOptions>
  readonly keys?: KeyOptions[]
  readonly state?: StateEntry
  readonly metrics?: MetricsEntry
  readonly log?: LogEntry
}
