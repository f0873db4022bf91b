import type { UpstreamsStatus } from '../core/upstream/upstream-status.js'
import type { Peers } from '../metrics/index.js'

/** The other processes of one gateway: what they count, and how upstreams do for them. */
export interface ProcessPeers extends Peers {
  /** How they do for this one. */
  readonly joinUpstreams: (own: () => UpstreamsStatus) => void
  readonly upstreams: () => Promise<readonly UpstreamsStatus[]>
}
