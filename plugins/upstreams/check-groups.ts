/** Checks that need several parts of a configuration: the upstreams and pools of groups exist, and speak the protocols that they use. */
import { didYouMean } from '../core/config/did-you-mean.js'
import { endpoints } from '../protocols/index.js'
import type { PoolOptions, UpstreamOptions } from './options.js'

/** One mistake of a configuration. */
interface Mistake {
  readonly path: string
  readonly message: string
}

interface GroupNames {
  readonly protocols: readonly string[]
  readonly upstream?: string | Readonly<Record<string, string>>
  readonly routes?: ReadonlyArray<{ readonly upstream: string, readonly models: readonly string[] }>
}

export interface Named {
  readonly upstreams: Readonly<Record<string, Pick<UpstreamOptions, 'protocols'>>>
  readonly pools: Readonly<Record<string, Pick<PoolOptions, 'members'>>>
  readonly groups: Readonly<Record<string, GroupNames>>
  /** Each group needs an upstream. False if a mount of the host's may send its requests. */
  readonly complete: boolean
}

/** What one group uses a name for. */
interface Use {
  readonly path: string
  readonly name: string
  readonly protocols: readonly string[]
}

export function groupMistakes (config: Named): Mistake[] {
  const groups = Object.entries(config.groups)
  const uses = groups.flatMap(([id, group]) => usesOf(`groups.${id}`, group))
  return [
    ...uses.flatMap((use) => wrongUse(use, config)),
    ...groups.flatMap(([id, group]) => missing(`groups.${id}`, group, config)),
    ...mixedPools(config, uses),
  ]
}

/** Warnings about routes, upstreams and pools that no request can reach: the only one there is needs no name. */
export function unreached ({ groups, upstreams, pools }: Pick<Named, 'groups' | 'pools'> & { upstreams: object }): string[] {
  const named = new Set(Object.entries(groups).flatMap(([id, group]) => usesOf(id, group)).map(({ name }) => name))
  const members = new Set(Object.values(pools).flatMap((pool) => pool.members.map(upstreamOf)))
  const targets = [
    ...Object.keys(pools).map((name) => [`pools.${name}`, named.has(name)] as const),
    ...Object.keys(upstreams).map((name) => [`upstreams.${name}`, named.has(name) || members.has(name)] as const),
  ]
  const hidden = Object.entries(groups).flatMap(([id, { routes = [] }]) => {
    const all = routes.findIndex(({ models }) => models.includes('*'))
    const later = all < 0 ? [] : [...routes.keys()].slice(all + 1)
    return later.map((i) => `groups.${id}.routes[${i}]: gets no request, because routes[${all}] before it takes every model`)
  })
  const unused = targets.length === 1 ? [] : targets.filter(([, isUsed]) => !isUsed)
  return [...hidden, ...unused.map(([path]) => `${path}: no group names it, so that it gets no request`)]
}

function usesOf (at: string, { protocols, upstream, routes = [] }: GroupNames): Use[] {
  const routed = routes.map((route, i) => ({ path: `${at}.routes[${i}].upstream`, name: route.upstream, protocols }))
  if (upstream === undefined) return routed
  if (typeof upstream === 'string') return [...routed, { path: `${at}.upstream`, name: upstream, protocols }]
  return [
    ...routed, ...Object.entries(upstream).map(([protocol, name]) => ({ path: `${at}.upstream.${protocol}`, name, protocols: [protocol] })),
  ]
}

function missing (at: string, { protocols, upstream, routes = [] }: GroupNames, { upstreams, pools, complete }: Named): Mistake[] {
  if (!complete) return []
  if (typeof upstream === 'object') {
    return protocols.filter((name) => upstream[name] === undefined).map((name) => ({
      path: `${at}.upstream.${name}`, message: 'is required',
    }))
  }
  const only = Object.keys(upstreams).length + Object.keys(pools).length === 1
  if (upstream !== undefined || routes.length > 0 || only) return []
  return [{ path: `${at}.upstream`, message: 'is required where there is not exactly one upstream' }]
}

function wrongUse ({ path, name, protocols }: Use, { upstreams, pools }: Named): Mistake[] {
  const upstream = ownOf(upstreams, name)
  if (upstream === undefined && ownOf(pools, name) === undefined) {
    return [{
      path,
      message: `names ${name}, which is not one of the upstreams${didYouMean(name, [...Object.keys(upstreams), ...Object.keys(pools)])}`,
    }]
  }
  const spoken: readonly string[] = upstream?.protocols ?? protocols
  const unspoken = protocols.find((protocol) => !spoken.includes(protocol))
  return unspoken === undefined ? [] : [{ path, message: `names ${name}, which does not speak ${unspoken}` }]
}

/** Pools whose members speak different families: judged by their `protocols`, or else by what groups use each of them for directly. */
function mixedPools (config: Named, uses: readonly Use[]): Mistake[] {
  return Object.entries(config.pools).flatMap(([pool, { members }]) => {
    const named = Array.isArray(members) ? members.map(upstreamOf) : []
    const known = named.flatMap((name) => {
      const families = familiesOf(ownOf(config.upstreams, name)?.protocols ?? uses.flatMap((use) => use.name === name ? use.protocols : []))
      return families.size === 0 ? [] : [{ name, families }]
    })
    const [first, ...others] = known
    const stranger = others.find(({ families }) => ![...families].some((family) => first?.families.has(family)))
    if (first === undefined || stranger === undefined) return []
    return [{
      path: `pools.${pool}.members`, message: `holds ${first.name} and ${stranger.name}, which speak protocols of different families`,
    }]
  })
}

export function upstreamOf (member: PoolOptions['members'][number]): string {
  return typeof member === 'string' ? member : member.upstream
}

function familiesOf (protocols: readonly string[]): ReadonlySet<string> {
  return new Set(endpoints.filter(({ protocol }) => protocols.includes(protocol)).map(({ family }) => family.name))
}

function ownOf<T> (named: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(named, name) ? named[name] : undefined
}
