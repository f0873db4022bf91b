/** Raw URL -> endpoint and canonical URL (docs/clients.md). Pure and idempotent: resolving a canonical URL gives the same URL. */
import type { Endpoint } from '../../protocols/index.js'
import { isPreflight } from '../door/arrival.js'
import { matchTail, plainTails, type TailMatch } from './match.js'
import { originForm } from './origin-form.js'
import { isCrowded, queryOf, splitKeys, withoutQuery } from './query.js'
import { doubtful, isUnknown, noEndpoint, worst, type PathParts, type UrlRefusal } from './refusal.js'
import { belowPrefix, isSuspicious, leadingVersions, readings, segmentsOf } from './segments.js'

export interface Resolved {
  readonly kind: 'endpoint'
  readonly endpoint: Endpoint
  /** Mount prefix, version, tail, and the query without credentials. */
  readonly url: string
  /** Where the version segment begins in `url`: what precedes it belongs to the mount and is not sent upstream. */
  readonly mountLength: number
  readonly model: string | null
  readonly keys: string[] | null
  /** What was repaired, null for nothing: a label of `path_normalizations_total`. */
  readonly repair: string | null
}

/** Null: not ours. `unknown_url` is ours only below a mount that serves nothing else; the caller decides. */
export type Resolution = Resolved | UrlRefusal | null

type Headers = Readonly<Record<string, unknown>>

export type Resolve = (method: string, url: string, headers: Headers) => Resolution

/** The path below which the endpoints are served. */
interface MountPrefix {
  /** The whole of it, empty for none. */
  readonly base: string
  readonly segments: readonly string[]
  /** Its segments as the router compares them with those of a path that `readings` takes apart. */
  readonly loose: readonly string[]
  readonly caseSensitive: boolean
}

/**
 * `prefix`: the mount prefix as path (`/llm`), empty for none. `caseSensitive`: false if the router accepts `/V1` for `/v1`; case is
 * significant all the same, so that such a path is refused instead of reaching a mount unguarded.
 */
export function createResolve (prefix: string, caseSensitive = true): Resolve {
  const segments = segmentsOf(prefix)
  const base = segments.map((segment) => `/${segment}`).join('')
  const mount: MountPrefix = { base, segments, loose: caseSensitive ? segments : segmentsOf(base.toLowerCase()), caseSensitive }
  const canonical = canonicalUrls(base)
  return function resolve (method, url, headers) {
    const known = canonical.get(routedMethod(method))?.get(url)
    if (known !== undefined) return known
    return isPreflight(method, headers) ? null : resolveSlowly(mount, method, originForm(url, headers['host']), headers)
  }
}

function resolveSlowly (mount: MountPrefix, method: string, url: string, headers: Headers): Resolution {
  const path = withoutQuery(url)
  const query = queryOf(url)
  if (isCrowded(query)) return resolveCrowded(mount, method, path, headers)
  const parts = split(path, path[0] === '/' ? segmentsOf(path) : [], mount.segments, headers, query)
  const match = matchTail(parts.tail ?? [], parts.caller)
  const endpoint = match?.endpoints.find((candidate) => candidate.method === routedMethod(method))
  if (match !== null && endpoint !== undefined) return found(endpoint, match, parts, mount.base)
  const mounted = mount.segments.length > 0
  const refusal = match === null && isDoubtful(mount, path)
    ? worst(readings(path, mount.caseSensitive).map((segments) => doubtful(split(path, segments, mount.loose, headers, query), mounted)))
    : noEndpoint(parts, match, method, mounted)
  if (refusal === null) return null
  const blank = refusal.code === 'ambiguous_path' && !isDoubtful(mount, path.replaceAll('%20', ''))
  const { query: kept, keys } = splitKeys(query)
  return { kind: 'refused', ...refusal, ...blank && { code: 'blank_in_path' }, url: path + kept, keys: () => keys }
}

/** Refused, whichever endpoint it is, and without the query: nobody has checked what that carries. */
function resolveCrowded (mount: MountPrefix, method: string, path: string, headers: Headers): Resolution {
  const read = resolveSlowly(mount, method, path, headers)
  if (read === null || (read.kind === 'refused' && !isUnknown(read))) return read
  const family = read.kind === 'endpoint' ? read.endpoint.family : read.family
  return { kind: 'refused', code: 'crowded_query', family, url: path }
}

/** `from`: the mount's segments, exact or loose. */
function split (path: string, segments: readonly string[], from: readonly string[], headers: Headers, query: string): PathParts {
  const below = belowPrefix(segments, from)
  const versions = below === null ? [] : leadingVersions(below)
  return { path, caller: { headers, query, versions }, tail: below?.slice(versions.length) ?? null }
}

function isDoubtful ({ base, caseSensitive }: MountPrefix, path: string): boolean {
  return isSuspicious(path) || (!caseSensitive && base + path !== (base + path).toLowerCase())
}

/** HEAD is GET without a body, wherever there is GET (RFC 9110 9.1, 9.3.2). */
function routedMethod (method: string): string {
  return method === 'HEAD' ? 'GET' : method
}

/** By method and URL: resolves nearly every request without taking it apart. */
function canonicalUrls (base: string): ReadonlyMap<string, ReadonlyMap<string, Resolved>> {
  const byMethod = new Map<string, Map<string, Resolved>>()
  for (const [tail, list] of plainTails) {
    for (const endpoint of list) {
      const url = `${base}/${endpoint.family.prefix}/${tail}`
      const known = byMethod.get(endpoint.method) ?? new Map<string, Resolved>()
      known.set(url, { kind: 'endpoint', endpoint, url, mountLength: base.length, model: null, keys: null, repair: null })
      byMethod.set(endpoint.method, known)
    }
  }
  return byMethod
}

function found (endpoint: Endpoint, match: TailMatch, { path, caller }: PathParts, base: string): Resolved {
  const { query, keys } = splitKeys(caller.query)
  const clean = `${base}/${endpoint.family.prefix}/${match.tail}`
  const repair = clean === path ? null : repairOf(endpoint.family.prefix, caller.versions)
  return { kind: 'endpoint', endpoint, url: clean + query, mountLength: base.length, model: match.model, keys, repair }
}

function repairOf (prefix: string, versions: readonly string[]): string {
  const [first] = versions
  if (first === undefined) return 'missing_prefix'
  if (versions.length === 1) return first === prefix ? 'slashes' : 'other_version'
  return versions.every((version) => version === first) ? `duplicate_${first}` : 'mixed_prefixes'
}
