/** Finds the caller's credential in the places of its family. Reads the raw headers, because Node joins or drops repeated ones. */
import type { CredentialSource, Family } from '../protocols/index.js'

type CredentialProblem = 'missing_api_key' | 'malformed_api_key' | 'duplicate_api_key' | 'key_in_query'

interface FoundCredential {
  readonly secret: string
  /** Another source of the same family held a different one. */
  readonly conflict: boolean
}

/**
 * The first source of the family that is present wins, even if its value is malformed: no source is tried after
 * another one failed (docs/security.md). A source without a value counts as absent: clients send one for a variable that is set to
 * nothing, beside the one that holds the key. `optional` names the opt-in sources that are read.
 */
export function findCredential (
  { credentials }: Family, rawHeaders: readonly string[], queryKeys: readonly string[] | null, optional: ReadonlySet<string>
): FoundCredential | CredentialProblem {
  if (queryKeys !== null && !credentials.some((source) => source.in === 'query')) return 'key_in_query'
  let secret: string | null = null
  let conflict = false
  for (const source of credentials) {
    if (source.optional !== undefined && !optional.has(source.optional)) continue
    const value = source.in === 'query' ? onlyOf(queryKeys) : headerValue(rawHeaders, source.name)
    if (value === undefined) continue
    if (value === null) return 'duplicate_api_key'
    const given = withoutScheme(value, source)
    if (given === '') continue
    if (secret !== null) conflict ||= given !== secret
    else if (given === null || !isWellFormed(given)) return 'malformed_api_key'
    else secret = given
  }
  return secret === null ? 'missing_api_key' : { secret, conflict }
}

/** Undefined for none, null for more than one. */
function onlyOf (values: readonly string[] | null): string | null | undefined {
  return values !== null && values.length > 1 ? null : values?.[0]
}

/** Undefined for none, null for more than one. */
function headerValue (rawHeaders: readonly string[], name: string): string | null | undefined {
  let value: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i]
    if (raw === undefined || raw.length !== name.length || (raw !== name && raw.toLowerCase() !== name)) continue
    if (value !== undefined) return null
    value = rawHeaders[i + 1]
  }
  return value
}

function withoutScheme (value: string, { scheme }: CredentialSource): string | null {
  if (scheme === undefined || value === '') return value
  let start = scheme.length
  if (!beginsWith(value, scheme) || (value.length > start && value[start] !== ' ')) return null
  while (value[start] === ' ') start += 1
  return value.slice(start)
}

/** In any case. `word` has only lower-case letters, and a capital differs from its own by one bit. */
function beginsWith (text: string, word: string): boolean {
  for (let i = 0; i < word.length; i += 1) {
    if ((text.charCodeAt(i) | 0x20) !== word.charCodeAt(i)) return false
  }
  return true
}

/**
 * Visible ASCII without blank or comma, which excludes headers that a proxy joined, and empty variables. Of any length: Node bounds all
 * headers together, and signed tokens, which a host's `lookup` reads, grow with what they say (200 groups are 10 KB).
 */
export function isWellFormed (secret: string): boolean {
  return /^[\x21-\x2b\x2d-\x7e]+$/.test(secret)
}

/** The first place where a family's credential may stand, in words for a 401 message. */
export function expectedCredential ({ credentials: [{ name, scheme }] }: Family): string {
  return scheme === undefined ? `${name}: KEY` : `${name}: Bearer KEY`
}
