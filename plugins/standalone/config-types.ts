/** `gateway.yaml` as validated by `schemas/gateway.schema.json`. */
import type { GroupOptions, KeyOptions } from '../auth/index.js'
import type { LlmGatewayOptions } from '../index.js'
import type { MetricsOptions } from '../metrics/index.js'
import type { CorsEntry } from './cors.js'
import type { StateConfig } from '../state/types.js'
import type { TracingOptions } from '../tracing/index.js'
import type { UpstreamOptions } from '../upstreams/index.js'

interface ListenEntry {
  readonly host?: string
  readonly port?: number
  readonly requestTimeoutMs?: number
  readonly shutdownGraceMs?: number
  readonly trustProxy?: string[]
  readonly workers?: number | 'auto'
}

export type UpstreamEntry =
  | { readonly simulate: true, readonly priceFactor?: number }
  | UpstreamOptions & { readonly simulate?: never }

interface LogEntry {
  readonly level?: string
}

/** Sections that are the options of the plugin of the same name, checked by the schema and by the plugin. */
type PartSections = Pick<LlmGatewayOptions, PartName> & { tracing?: TracingOptions }

type PartName =
  | 'prefix' | 'pools' | 'auth' | 'limits' | 'validation' | 'usage' | 'prices' | 'costs' | 'labels' | 'forward' | 'console' | 'overload'

export interface GatewayConfig extends PartSections {
  /** For editors. */
  readonly $schema?: string
  readonly listen?: ListenEntry
  readonly upstreams: Readonly<Record<string, UpstreamEntry>>
  readonly groups: Record<string, GroupOptions>
  readonly keys?: KeyOptions[]
  readonly state?: StateConfig
  readonly metrics?: MetricsOptions & { path?: string }
  readonly log?: LogEntry
  readonly cors?: CorsEntry
}
