import { didYouMean } from '../core/config/did-you-mean.js'
import { checkChoice, checkOptions, OptionError, withDefaults } from '../core/config/options.js'
import type { Upstream } from '../core/upstream/upstream.js'
import { Affinity } from './affinity.js'
import type { HealthRegistry } from './health.js'
import { memberDefaults, newMember, type Member } from './member.js'
import type { MemberOptions, PoolOptions } from './options.js'

type PoolRules = Required<Omit<PoolOptions, 'members'>>

export interface Pool extends Readonly<Omit<PoolRules, 'retryOn'>> {
  readonly name: string
  /** The lowest tier first. */
  readonly members: readonly Member[]
  /** As in `retryOn`. */
  readonly causes: ReadonlySet<string>
  readonly homes: Affinity
}

const causes: readonly string[] = ['connect', 'reset', 'timeout', 'first_event', '429', '500', '502', '503', '504', '529']

export const poolDefaults: PoolRules = {
  attempts: 3,
  retryOn: ['connect', 429, 503, 529],
  affinity: 'conversation',
  affinityTtlMs: 86_400_000,
  // That of the transport ends it.
  attemptTimeoutMs: Infinity,
  deadlineMs: 900_000,
}

const poolChecks = {
  anything: ['members', 'retryOn', 'affinity'],
  'a whole number of at least 1': ['attempts', 'affinityTtlMs', 'attemptTimeoutMs', 'deadlineMs'],
}

const memberChecks = {
  anything: ['upstream'],
  'a whole number of at least 1': ['weight', 'concurrency', 'tier'],
}

/** Throws `LLM_GATEWAY_OPTION` naming the field. */
export function readPools (
  options: Readonly<Record<string, PoolOptions>>, upstreams: ReadonlyMap<string, Upstream>, registry: HealthRegistry
): Map<string, Pool> {
  return new Map(Object.entries(options).map(([name, pool]) => {
    if (upstreams.has(name)) throw new OptionError(`pools.${name}`, 'has the name of an upstream')
    return [name, readPool(name, pool, { upstreams, registry, pools: Object.keys(options) })]
  }))
}

interface Known {
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly pools: readonly string[]
  readonly registry: HealthRegistry
}

function readPool (name: string, options: PoolOptions, beside: Known): Pool {
  const at = `pools.${name}`
  checkOptions(at, options, poolChecks)
  checkChoice(`${at}.affinity`, options.affinity, ['conversation', 'key', 'none'])
  const { members, ...rules } = options
  const { retryOn, ...others } = withDefaults(poolDefaults, rules)
  if (!Array.isArray(members) || members.length === 0) throw new OptionError(`${at}.members`, 'must be a list of at least one upstream')
  const read = members.map((member: unknown, i) => readMember(name, i, member, beside))
  const twice = read.find(({ upstream }, i) => read.findIndex((other) => other.upstream === upstream) < i)
  if (twice !== undefined) throw new OptionError(`${at}.members`, `holds ${twice.upstream.name} twice`)
  return {
    ...others,
    name,
    members: read.sort((one, other) => one.tier - other.tier),
    causes: readCauses(`${at}.retryOn`, retryOn),
    homes: new Affinity(),
  }
}

function readMember (pool: string, i: number, given: unknown, { upstreams, pools, registry }: Known): Member {
  const at = `pools.${pool}.members[${i}]`
  const options: MemberOptions = typeof given === 'string' ? { upstream: given } : Object(given)
  checkOptions(at, options, memberChecks)
  const { upstream: name, ...rules } = options
  if (pools.includes(name)) throw new OptionError(at, `names ${name}, which is a pool: members are upstreams`)
  const upstream = upstreams.get(name)
  if (upstream === undefined) {
    throw new OptionError(at, `names ${String(name)}, which is not one of the upstreams${didYouMean(String(name), [...upstreams.keys()])}`)
  }
  const health = registry.of(upstream)
  return newMember(upstream, health, withDefaults(memberDefaults, rules), health.loadIn(pool))
}

function readCauses (at: string, given: unknown): ReadonlySet<string> {
  if (!Array.isArray(given)) throw new OptionError(at, 'must be a list')
  const named = given.map(String)
  const unknown = named.find((name) => !causes.includes(name))
  if (unknown !== undefined) throw new OptionError(at, `holds ${unknown}, which is none of ${causes.join(', ')}`)
  return new Set(named)
}

const { retryOn, ...ownRules } = poolDefaults
/** Pools that no configuration names tie no request to a member. */
const unnamed = { ...ownRules, affinity: 'none', homes: new Affinity() } as const

/** A pool for an upstream that is in none: one member and one attempt. */
export function poolOfOne (upstream: Upstream, registry: HealthRegistry): Pool {
  const members = [newMember(upstream, registry.of(upstream))]
  return { ...unnamed, name: upstream.name, members, attempts: 1, causes: new Set(), deadlineMs: Infinity }
}

/** A pool of all upstreams that may have what a request without a model asks for. `first` are asked before the others. */
export function poolOf (first: readonly Upstream[], others: readonly Upstream[], registry: HealthRegistry): Pool {
  const tiers = [...new Set([...first, ...others])].map((upstream) => newMember(upstream, registry.of(upstream), {
    ...memberDefaults, tier: first.includes(upstream) ? 1 : 2,
  }))
  return { ...unnamed, name: 'all', members: tiers, causes: new Set(['connect']) }
}
