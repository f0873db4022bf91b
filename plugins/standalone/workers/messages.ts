/** What the primary and its workers tell each other over the channel between them. */
import type { Worker } from 'node:cluster'
import type { UpstreamsStatus } from '../../core/upstream/upstream-status.js'
import type { ListenAddress } from '../config.js'

/** One series: of a histogram the sum, the count and what fell into each bucket, else the value. */
export interface WireSeries {
  readonly name: string
  readonly text: string
  readonly labels: Readonly<Record<string, string>>
  readonly numbers: readonly number[]
}

/** A series that was counted in since the last message: by the number that its worker gave it, told whole the first time. */
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
  /** The text of the configuration, and what it was when the gateway began. */
  | { readonly type: 'start', readonly text: string, readonly firstText: string }
  | { readonly type: 'reload', readonly text: string }
  | { readonly type: 'flush', readonly id: number }
  | { readonly type: 'others', readonly id: number, readonly series: readonly WireSeries[], readonly upstreams: readonly UpstreamsStatus[] }
  | { readonly type: 'stop' }

/** One whose channel is closed hears nothing any more, and its end is heard of. */
export function tell (worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {})
}
