/** Raw URL -> endpoint and canonical URL (docs/clients.md). Pure and idempotent: resolving a canonical URL gives the same URL. */
import type { Caller, Endpoint, Family } from '../../protocols/index.js'
import { isPreflight } from '../door/arrival.js'
import { endingLike, familyAsked, isRoot, isWhole, matchTail, plainTails, type TailMatch } from './match.js'
import { originForm } from './origin-form.js'
import { isCrowded, splitKeys } from './query.js'
import { belowPrefix, isDecodable, isSuspicious, leadingVersions, readings, segmentsOf } from './segments.js'

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

export interface UrlRefusal {
  readonly kind: 'refused'
  /** `blank_in_path` is answered as `unknown_url`, but never left to a mount: an upstream may drop the blank. */
  readonly code:
    'ambiguous_path' | 'blank_in_path' | 'crowded_query' | 'doubled_path' | 'method_not_allowed' | 'unknown_action' | 'unknown_url'
  readonly family: Family
  /** The URL without credentials, safe to log. */
  readonly url: string
  /** As in `Resolved`; a function, so that printing this object prints no secret. */
  readonly keys?: () => string[] | null
  /** Methods that the path has, for `method_not_allowed`. */
  readonly allow?: readonly string[]
}

/** Null: not ours. `unknown_url` is ours only below a mount that serves nothing else; the caller decides. */
export type Resolution = Resolved | UrlRefusal | null

type Headers = Readonly<Record<string, unknown>>

export type Resolve = (method: string, url: string, headers: Headers) => Resolution

/** The parts of a path, without its mount prefix and versions. `tail` is null outside the mount. */
interface Parts {
  readonly path: string
  readonly caller: Caller
  readonly tail: readonly string[] | null
}

/**
 * `prefix`: the mount prefix as path (`/llm`), empty for none. `caseSensitive`: false if the router accepts `/V1` for `/v1`; case is
 * significant all the same, so that such a path is refused instead of reaching a mount unguarded.
 */
export function createResolve (prefix: string, caseSensitive = true): Resolve {
  const mount = segmentsOf(prefix)
  const base = mount.map((segment) => `/${segment}`).join('')
  const loose = caseSensitive ? mount : segmentsOf(base.toLowerCase())
  const canonical = canonicalUrls(base)

  function split (path: string, segments: readonly string[], from: readonly string[], headers: Headers, query: string): Parts {
    const below = belowPrefix(segments, from)
    const versions = below === null ? [] : leadingVersions(below)
    return { path, caller: { headers, query, versions }, tail: below === null ? null : below.slice(versions.length) }
  }

  /** Refused, whichever endpoint it is, and without the query: nobody has checked what that carries. */
  function resolveCrowded (method: string, path: string, headers: Headers): Resolution {
    const read = resolveSlowly(method, path, headers)
    if (read === null || (read.kind === 'refused' && read.code !== 'unknown_url')) return read
    const family = read.kind === 'endpoint' ? read.endpoint.family : read.family
    return { kind: 'refused', code: 'crowded_query', family, url: path }
  }

  function resolveSlowly (method: string, url: string, headers: Headers): Resolution {
    const mark = url.indexOf('?')
    const path = mark < 0 ? url : url.slice(0, mark)
    const query = mark < 0 ? '' : url.slice(mark)
    if (isCrowded(query)) return resolveCrowded(method, path, headers)
    const parts = split(path, path[0] === '/' ? segmentsOf(path) : [], mount, headers, query)
    const match = matchTail(parts.tail ?? [], parts.caller)
    const endpoint = match?.endpoints.find((candidate) => candidate.method === readAs(method))
    if (match !== null && endpoint !== undefined) return found(endpoint, match, parts, base)
    const refusal = match === null && isDoubtful(path)
      ? worst(readings(path, caseSensitive).map((segments) => doubtful(split(path, segments, loose, headers, query), mount.length > 0)))
      : noEndpoint(parts, match, method, mount.length > 0)
    if (refusal === null) return null
    const blank = refusal.code === 'ambiguous_path' && !isDoubtful(path.replaceAll('%20', ''))
    const { query: kept, keys } = splitKeys(query)
    return { kind: 'refused', ...refusal, ...blank && { code: 'blank_in_path' }, url: path + kept, keys: () => keys }
  }

  function isDoubtful (path: string): boolean {
    return isSuspicious(path) || (!caseSensitive && base + path !== (base + path).toLowerCase())
  }

  return function resolve (method, url, headers) {
    const known = canonical.get(readAs(method))?.get(url)
    if (known !== undefined) return known
    return isPreflight(method, headers) ? null : resolveSlowly(method, originForm(url, headers['host']), headers)
  }
}

/** HEAD is GET without a body, wherever there is GET (RFC 9110 9.1, 9.3.2). */
function readAs (method: string): string {
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

function found (endpoint: Endpoint, match: TailMatch, { path, caller }: Parts, base: string): Resolved {
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

type RefusalReason = Pick<UrlRefusal, 'code' | 'family' | 'allow'> | null

/** One reading of a path that two readers could read in two ways: refused if it contains an endpoint. */
function doubtful ({ path, tail, caller }: Parts, mounted: boolean): RefusalReason {
  if (tail === null) return null
  const [endpoint] = matchTail(tail, caller)?.endpoints ?? endingLike(tail)
  if (endpoint !== undefined) return { code: 'ambiguous_path', family: endpoint.family }
  const versioned = caller.versions.length > 0
  if (!versioned && !mounted) return null
  // What the router cannot decode is no route of the host either.
  const code = (versioned && isRoot(tail[0])) || !isDecodable(path) ? 'ambiguous_path' : 'unknown_url'
  return { code, family: familyAsked(tail, caller) }
}

function worst (refusals: readonly RefusalReason[]): RefusalReason {
  return refusals.find((refusal) => refusal?.code === 'ambiguous_path') ?? refusals.find((refusal) => refusal !== null) ?? null
}

/** A plain path that is no endpoint with this method: doubled, of another method, or unknown below the mount. */
function noEndpoint ({ tail, caller }: Parts, match: TailMatch | null, method: string, mounted: boolean): RefusalReason {
  if (tail === null) return null
  const doubled = doubledFamily(tail, caller)
  if (doubled !== null) return { code: 'doubled_path', family: doubled }
  const others = match?.endpoints ?? []
  const [other] = others
  if (other !== undefined && method === 'POST' && endsInWord(tail)) return { code: 'unknown_action', family: other.family }
  if (other !== undefined) {
    return {
      code: 'method_not_allowed',
      family: other.family,
      allow: others.flatMap((allowed) => allowed.method === 'GET' ? ['GET', 'HEAD'] : [allowed.method]),
    }
  }
  return caller.versions.length > 0 || mounted || endingLike(tail).length > 0
    ? { code: 'unknown_url', family: familyAsked(tail, caller) }
    : null
}

/** A model in the path may be followed by an action; this one is unknown, or differs in case from a known one. */
function endsInWord (tail: readonly string[]): boolean {
  return tail[0] === 'models' && /(?::|%3A)[A-Za-z]+$/i.test(String(tail.at(-1)))
}

/** More segments than any endpoint has. Without a maximum, a path of thousands of segments took half a second to refuse. */
const maxBaseSegments = 16

/** The family of an endpoint whose tail follows another whole tail: a full endpoint URL was given as base address. */
function doubledFamily (tail: readonly string[], caller: Caller): Family | null {
  for (let cut = 1; cut < tail.length && cut <= maxBaseSegments; cut += 1) {
    if (!isWhole(tail.slice(0, cut))) continue
    const rest = tail.slice(cut)
    const [again] = matchTail(rest.slice(leadingVersions(rest).length), caller)?.endpoints ?? []
    if (again !== undefined) return again.family
  }
  return null
}
