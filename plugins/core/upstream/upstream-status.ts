/** State of the upstreams, for operators: made by the upstreams plugin, shown by the console. Times are milliseconds from now. */

/** A model for which an upstream gets no requests until then. */
export interface ModelOut {
  readonly model: string
  /** Its account reached a limit, or its credential may not use the model. */
  readonly reason: 'limit' | 'credential'
  readonly returnsInMs: number
}

export interface UpstreamStatus {
  readonly name: string
  /** Its base address, without query and credential. */
  readonly address: string
  readonly account: string
  /** `due`: it was out, and the next request, or the running one, decides. */
  readonly state: 'up' | 'out' | 'due'
  /** Why it is not up. */
  readonly reason: 'failures' | 'credential' | null
  /** 0 if it may be asked now. */
  readonly returnsInMs: number
  /** Requests that run there. */
  readonly active: number
  readonly models: readonly ModelOut[]
  /** Number of processes in which it is so. */
  readonly workers: number
}

interface MemberStatus {
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
  /** Number of processes that reported. */
  readonly workers: number
}

export const nothingKnown: UpstreamsStatus = { upstreams: [], pools: [], workers: 1 }

/**
 * The states of several processes in one: each upstream appears once for each state that it has in any of them, because each process has
 * breakers of its own.
 */
export function mergedStatus (all: readonly UpstreamsStatus[]): UpstreamsStatus {
  const upstreams = new Map<string, UpstreamStatus>()
  const names = new Map<string, number>()
  for (const each of all.flatMap((status) => status.upstreams)) {
    names.set(each.name, names.get(each.name) ?? names.size)
    const state = JSON.stringify([each.name, each.state, each.reason])
    const known = upstreams.get(state)
    upstreams.set(state, known === undefined ? each : joined(known, each))
  }
  const place = ({ name }: UpstreamStatus): number => Number(names.get(name))
  return {
    upstreams: [...upstreams.values()].toSorted((one, other) => place(one) - place(other)),
    pools: (all[0]?.pools ?? []).map((pool) => withActiveOf(pool, all)),
    workers: all.reduce((sum, { workers }) => sum + workers, 0),
  }
}

function joined (one: UpstreamStatus, other: UpstreamStatus): UpstreamStatus {
  return {
    ...one,
    returnsInMs: Math.max(one.returnsInMs, other.returnsInMs),
    active: one.active + other.active,
    models: outIn([...one.models, ...other.models]),
    workers: one.workers + other.workers,
  }
}

/** Each model once, for as long as it is out anywhere. */
function outIn (all: readonly ModelOut[]): ModelOut[] {
  const models = new Map<string, ModelOut>()
  for (const out of all) {
    const name = `${out.reason} ${out.model}`
    if (out.returnsInMs >= (models.get(name)?.returnsInMs ?? 0)) models.set(name, out)
  }
  return [...models.values()]
}

function withActiveOf ({ name, members }: PoolStatus, all: readonly UpstreamsStatus[]): PoolStatus {
  const everywhere = all.flatMap(({ pools }) => pools.filter((pool) => pool.name === name)).flatMap((pool) => pool.members)
  const activeOf = (name: string): number => {
    return everywhere.filter(({ upstream }) => upstream === name).reduce((sum, { active }) => sum + active, 0)
  }
  return { name, members: members.map((member) => ({ ...member, active: activeOf(member.upstream) })) }
}

/** The state in words, with the number of processes if not all agree. */
export function stateText ({ state, reason, workers }: Pick<UpstreamStatus, 'state' | 'reason' | 'workers'>, all: number): string {
  const text = reason === null ? state : `${state}: ${reason}`
  return workers === all ? text : `${text} (${workers} of ${all} workers)`
}
