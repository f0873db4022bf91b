/** Why a path that is no endpoint is refused, or that it is not ours. */
import type { Caller, Family } from '../../protocols/index.js'
import { familyAsked, familyLike, isRoot, isWhole, lastWord, matchTail, type TailMatch } from './match.js'
import { isDecodable, isSuspicious, leadingVersions } from './segments.js'

export interface UrlRefusal {
  readonly kind: 'refused'
  /**
   * `blank_in_path` is answered as `unknown_url`, and `misspelled_action` as `unknown_action`, but neither is left to a mount: an upstream
   * may drop the blank, or tell no cases apart.
   */
  readonly code: 'ambiguous_path' | 'blank_in_path' | 'crowded_query' | 'doubled_path' | 'method_not_allowed' | 'misspelled_action' |
    'unknown_action' | 'unknown_url'
  readonly family: Family
  /** The URL without credentials, safe to log. */
  readonly url: string
  /** As in `Resolved`; a function, so that printing this object prints no secret. */
  readonly keys?: () => string[] | null
  /** Methods that the path has, for `method_not_allowed`. */
  readonly allow?: readonly string[]
}

/** The parts of a path, without its mount prefix and versions. `tail` is null outside the mount. */
export interface PathParts {
  readonly path: string
  readonly caller: Caller
  readonly tail: readonly string[] | null
}

/** Null where nothing speaks against the path: it is not ours. */
type RefusalReason = Pick<UrlRefusal, 'code' | 'family' | 'allow'> | null

/** True for a path that no endpoint has, and that nobody could take for one: a host may let it pass. */
export function isUnknown ({ code }: Pick<UrlRefusal, 'code'>): boolean {
  return code === 'unknown_url' || code === 'unknown_action'
}

/** One reading of a path that two readers could read in two ways: refused if it contains an endpoint. */
export function doubtful ({ path, tail, caller }: PathParts, mounted: boolean): RefusalReason {
  if (tail === null) return null
  const family = matchTail(tail, caller)?.endpoints[0]?.family ?? familyLike(tail)
  if (family !== null) return { code: 'ambiguous_path', family }
  const versioned = caller.versions.length > 0
  if (!versioned && !mounted) return null
  // What the router cannot decode is no route of the host either. Ids below an endpoint, as of a batch, may have capital letters.
  const code = (versioned && isRoot(tail[0]) && isSuspicious(path)) || !isDecodable(path) ? 'ambiguous_path' : 'unknown_url'
  return { code, family: familyAsked(tail, caller) }
}

export function worst (refusals: readonly RefusalReason[]): RefusalReason {
  return refusals.find((refusal) => refusal?.code === 'ambiguous_path') ?? refusals.find((refusal) => refusal !== null) ?? null
}

/** A plain path that is no endpoint with this method: doubled, of another method, or unknown below the mount. */
export function noEndpoint ({ tail, caller }: PathParts, match: TailMatch | null, method: string, mounted: boolean): RefusalReason {
  if (tail === null) return null
  const doubled = doubledFamily(tail, caller)
  if (doubled !== null) return { code: 'doubled_path', family: doubled }
  const others = match?.endpoints ?? []
  const [other] = others
  const isAction = method === 'POST' && endsInWord(tail)
  const like = other === undefined || isAction ? familyLike(tail) : null
  if (like !== null) return { code: 'misspelled_action', family: other?.family ?? like }
  if (other !== undefined && isAction) return { code: 'unknown_action', family: other.family }
  if (other !== undefined) {
    return {
      code: 'method_not_allowed',
      family: other.family,
      allow: others.flatMap((allowed) => allowed.method === 'GET' ? ['GET', 'HEAD'] : [allowed.method]),
    }
  }
  return caller.versions.length > 0 || mounted ? { code: 'unknown_url', family: familyAsked(tail, caller) } : null
}

/** A model in the path may be followed by an action that no endpoint has. */
function endsInWord (tail: readonly string[]): boolean {
  return tail[0] === 'models' && lastWord(String(tail.at(-1))) !== undefined
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
