import { credentialParameters } from '../../protocols/index.js'

/** A query with every credential taken out of it. */
export interface SplitQuery {
  /** With its `?`, or empty; every other parameter byte for byte. */
  readonly query: string
  /** The values of `key`, each decoded once; null where there was none. */
  readonly keys: string[] | null
}

const carriers = new Set(credentialParameters)

/** What any spelling of a carrier has in it. */
const suspect = new RegExp(`%|${credentialParameters.map((name) => name.replaceAll('_', '.?')).join('|')}`, 'i')

const maxDecodeRounds = 4

/** Broken escapes stay. Nothing is thrown: a query has room for thousands of them, and each would cost as much as a hundred others. */
function decoded (text: string): string {
  const bytes = text.replaceAll('+', ' ').replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}

/**
 * True for a parameter that some upstream may take a credential from, whatever its spelling: `key`, `KEY`, `$key`, `%24key`,
 * `key[]`, `key[a]`, ` key`, `api-key`.
 */
export function isCarrier (name: string): boolean {
  return carriers.has(plainName(name))
}

/** A parameter's name as the laxest server may read it: decoded, in lower case, without `$` and brackets, `_` for any separator. */
export function plainName (name: string): string {
  const bare = fullyDecoded(name).replace(/\[.*$/s, '').replaceAll('\0', ' ').replace(/^[\s$]+/, '').trimEnd()
  return bare.replace(/[-. ]/g, '_').toLowerCase()
}

function fullyDecoded (text: string): string {
  let plain = text
  for (let round = 0; round < maxDecodeRounds && /[%+]/.test(plain); round += 1) plain = decoded(plain)
  return plain
}

/**
 * The parameters of a query (`?...` or empty), each as `plainName` and its value decoded; those after a `;` too, as some servers read them.
 */
export function parametersOf (query: string): Array<readonly [name: string, value: string]> {
  const pairs = query.slice(1).split('&')
  return pairs.flatMap((pair) => [pair, ...pair.split(';').slice(1)])
    .map((pair) => [plainName(nameOf(pair)), fullyDecoded(pair.slice(nameOf(pair).length + 1))] as const)
}

/**
 * Separates credentials from the rest of a query (`?...` or empty). Servers differ in whether `;` separates parameters, so
 * what would be a credential where it does goes too.
 */
export function splitKeys (query: string): SplitQuery {
  if (!suspect.test(query)) return { query, keys: null }
  const keys: string[] = []
  const kept: string[] = []
  let isWhole = true
  for (const pair of query.slice(1).split('&')) {
    if (decoded(nameOf(pair)) === 'key') keys.push(decoded(pair.slice(nameOf(pair).length + 1)))
    const rest = withoutCarriers(pair)
    isWhole &&= rest === pair
    if (rest !== null) kept.push(rest)
  }
  if (isWhole) return { query, keys: null }
  return { query: kept.length === 0 ? '' : `?${kept.join('&')}`, keys: keys.length === 0 ? null : keys }
}

/** What is left of one parameter; null for nothing. */
function withoutCarriers (pair: string): string | null {
  if (isCarrier(nameOf(pair))) return null
  const parts = pair.split(';')
  const kept = parts.filter((part) => !isCarrier(nameOf(part)))
  if (kept.length === parts.length) return pair
  return kept.join('') === '' ? null : kept.join(';')
}

function nameOf (pair: string): string {
  const end = pair.indexOf('=')
  return end < 0 ? pair : pair.slice(0, end)
}
