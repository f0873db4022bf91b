/** `gateway.yaml` as `schemas/gateway.schema.json` lets it through. */
import type { ProtocolName } from '../protocols/types.js'
import type { Limits } from '../request.js'

export interface ListenEntry {
  readonly host?: string
  readonly port?: number
  readonly requestTimeoutMs?: number
  readonly shutdownGraceMs?: number
}

export type UpstreamEntry =
  | { readonly simulate: true }
  | { readonly url: string, readonly credential: string, readonly simulate?: never }

export interface GroupEntry {
  readonly protocols: readonly ProtocolName[]
  readonly upstream?: string | Readonly<Partial<Record<ProtocolName, string>>>
  readonly thirdParty?: boolean
  readonly models?: readonly string[]
  readonly limits?: Limits
  readonly onStoreFailure?: 'closed' | 'local'
}

export interface KeyEntry {
  readonly id: string
  readonly group: string
  readonly secret?: string
  readonly hash?: string
  readonly expires?: string
  readonly disabled?: boolean
  readonly limits?: Limits
}

export interface StateEntry {
  readonly engine: 'memory' | 'lmdb' | 'redis'
  readonly path?: string
  readonly url?: string
}

export interface MetricsEntry {
  readonly path?: string
  readonly models?: readonly string[]
}

export interface GatewayConfig {
  readonly listen?: ListenEntry
  readonly upstreams: Readonly<Record<string, UpstreamEntry>>
  readonly groups: Readonly<Record<string, GroupEntry>>
  readonly keys?: readonly KeyEntry[]
  readonly state?: StateEntry
  readonly metrics?: MetricsEntry
}
