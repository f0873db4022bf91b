import type { ModelOut, PoolStatus, UpstreamStatus, UpstreamsStatus } from '../core/upstream/upstream-status.js'
import type { Upstream } from '../core/upstream/upstream.js'
import type { Health, HealthRegistry } from './health.js'
import type { Pool } from './pool.js'

/** The state of each upstream and of the members of each pool. `now`: by the clock of their health. */
export function statusOf (upstreams: Iterable<Upstream>, pools: Iterable<Pool>, registry: HealthRegistry, now: number): UpstreamsStatus {
  return {
    upstreams: [...upstreams].map((upstream) => upstreamStatus(upstream, registry.of(upstream), now)),
    pools: [...pools].map(poolStatus),
    workers: 1,
  }
}

function upstreamStatus ({ name, origin, basePath, account }: Upstream, health: Health, now: number): UpstreamStatus {
  const { breaker, credential, active } = health
  const until = Math.max(breaker.dueAt, credential.dueAt)
  const reason = credential.isOpen ? 'credential' : breaker.isOpen ? 'failures' : null
  const state = reason === null ? 'up' : health.isWell(now) || until <= now ? 'due' : 'out'
  const address = origin + basePath
  return { name, address, account, state, reason, returnsInMs: inMs(until, now), active, models: modelsOut(health, now), workers: 1 }
}

function modelsOut ({ account, models }: Health, now: number): ModelOut[] {
  const limited = account.cooled(now).map(([model, until]) => ({ model, reason: 'limit' as const, returnsInMs: inMs(until, now) }))
  const refused = [...models.entries()].flatMap(([model, { until }]) => until > now
    ? [{ model, reason: 'credential' as const, returnsInMs: inMs(until, now) }]
    : [])
  return [...limited, ...refused]
}

function poolStatus ({ name, members }: Pool): PoolStatus {
  return {
    name,
    members: members.map(({ upstream, tier, weight, concurrency, load }) => ({
      upstream: upstream.name, tier, weight, concurrency: Number.isFinite(concurrency) ? concurrency : null, active: load.active,
    })),
  }
}

function inMs (until: number, now: number): number {
  return Math.max(0, Math.ceil(until - now))
}
