/** How upstreams do, as an operator is told: made by the upstreams plugin, shown by the console. Times are milliseconds from now. */

/** What an upstream gets no request for, until then. */
export interface ModelOut {
  readonly model: string
  /** Its account was at a limit, or its credential may not use the model. */
  readonly reason: 'limit' | 'credential'
  readonly returnsInMs: number
}

export interface UpstreamStatus {
  readonly name: string
  /** Its base address: no query, no credential. */
  readonly address: string
  readonly account: string
  /** `due`: it was out, and the next request tells, or the one that runs. */
  readonly state: 'up' | 'out' | 'due'
  /** Why it is not up. */
  readonly reason: 'failures' | 'credential' | null
  /** 0 where it may be asked now. */
  readonly returnsInMs: number
  /** Requests that run there. */
  readonly active: number
  readonly models: readonly ModelOut[]
}

export interface MemberStatus {
  readonly upstream: string
  readonly tier: number
  readonly weight: number
  /** Null for any number. */
  readonly concurrency: number | null
  /** Requests of this pool that run there. */
  readonly active: number
}

export interface PoolStatus {
  readonly name: string
  readonly members: readonly MemberStatus[]
}

export interface UpstreamsStatus {
  readonly upstreams: readonly UpstreamStatus[]
  readonly pools: readonly PoolStatus[]
}

export const nothingKnown: UpstreamsStatus = { upstreams: [], pools: [] }
