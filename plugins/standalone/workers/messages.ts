/** The messages between the primary and its workers. */
import type { Worker } from 'node:cluster'
import type { UpstreamsStatus } from '../../core/upstream/upstream-status.js'
import type { ListenAddress } from '../config-values.js'

/** One series: for a histogram the sum, the count and its buckets, otherwise the value. */
export interface WireSeries {
  readonly name: string
  readonly text: string
  readonly labels: Readonly<Record<string, string>>
  readonly numbers: readonly number[]
}

/** A series that has changed since the last message: by the number that its worker gave it, sent completely the first time. */
export type Counted = readonly [id: number, numbers: readonly number[], series?: WireSeries]

export type FromWorker =
  | { readonly type: 'asks to start' }
  | { readonly type: 'ready', readonly address: ListenAddress, readonly consoleAddress: ListenAddress | null }
  | { readonly type: 'failed', readonly message: string }
  | { readonly type: 'counted', readonly cells: readonly Counted[] }
  | { readonly type: 'flushed', readonly id: number, readonly gauges: readonly WireSeries[], readonly upstreams: UpstreamsStatus }
  | { readonly type: 'read', readonly id: number }
  | { readonly type: 'reloaded', readonly ok: boolean }

export type ToWorker =
  /** The text of the configuration, now and when the gateway began. */
  | { readonly type: 'start', readonly text: string, readonly firstText: string }
  | { readonly type: 'reload', readonly text: string }
  | { readonly type: 'flush', readonly id: number }
  | { readonly type: 'others', readonly id: number, readonly series: readonly WireSeries[], readonly upstreams: readonly UpstreamsStatus[] }
  | { readonly type: 'stop' }

/** A worker whose channel is closed receives nothing any more; its end is noticed otherwise. */
export function tell (worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {})
}
