import type { UpstreamsStatus } from '../core/upstream/upstream-status.js'
import type { Peers } from '../metrics/index.js'

/** The other processes of one gateway: what they count, and how they see the upstreams. */
export interface ProcessPeers extends Peers {
  /** Sets how this process sees the upstreams. */
  readonly joinUpstreams: (own: () => UpstreamsStatus) => void
  readonly upstreams: () => Promise<readonly UpstreamsStatus[]>
}
