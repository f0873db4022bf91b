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
const suspect = new RegExp(`[%\\x80-\\xff]|${credentialParameters.map((name) => name.replaceAll('_', '.?')).join('|')}`, 'i')

const maxDecodeRounds = 4

/** Broken escapes stay. Nothing is thrown: a query has room for thousands of them, and each would cost as much as a hundred others. */
function decoded (text: string): string {
  const plain = text.replaceAll('+', ' ')
  return plain.includes('%') ? plain.replace(/%u00(?=[0-9a-f]{2})/gi, '%').replace(/(?:%[0-9a-f]{2})+/gi, utf8Of) : plain
}

/** Escaped or as Node gives them, a letter each. */
function utf8Of (bytes: string): string {
  return Buffer.from(bytes.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))), 'latin1').toString()
}

/** True for a parameter that some upstream may take a credential from, whatever its spelling. */
export function isCarrier (name: string): boolean {
  return namesOf(name).some((read) => carriers.has(read))
}

/**
 * The names that the laxest servers may read in a parameter's, in lower case, with `_` for any separator. Old Rack and qs take brackets
 * off its start, and all of them what is in brackets, qs and Spring what follows a dot, off its end; PHP ends it at NUL, and a dot, a blank
 * and a bracket that stays open are `_` to it; ASP.NET decodes `%u006b`, and compares without invisible letters; who takes an address
 * apart by hand finds it behind `?`, `&` or `;`.
 */
function namesOf (name: string): string[] {
  if (/^\w*$/.test(name)) return [name.toLowerCase()]
  const text = fullyDecoded(name)
  return [text, text.replace(/\p{C}/gu, '')].flatMap((reading) => reading.toLowerCase().split(/[?&;#]/)).flatMap(wordsOf)
}

/** What stands before its first letter is no part of it. */
function wordsOf (text: string): string[] {
  const [word = ''] = /[a-z0-9_][\w.[ -]*/.exec(text) ?? []
  const [first = ''] = word.split(/[.[]/, 1)
  return [word, first].map((reading) => reading.trimEnd().replace(/[-.[ ]/g, '_'))
}

function fullyDecoded (text: string): string {
  let plain = text.replace(/[\x80-\xff]+/g, utf8Of)
  for (let round = 0; round < maxDecodeRounds && /[%+]/.test(plain); round += 1) plain = decoded(plain)
  return plain
}

/**
 * The parameters of a query (`?...` or empty), each under every name that it may have, in lower case, and its value decoded; those after a
 * `;` too, as some servers read them.
 */
export function parametersOf (query: string): Array<readonly [name: string, value: string]> {
  const pairs = query.slice(1).split('&')
  return pairs.flatMap((pair) => [pair, ...pair.split(';').slice(1)]).flatMap((pair) => {
    const value = fullyDecoded(pair.slice(nameOf(pair).length + 1))
    return namesOf(nameOf(pair)).map((name) => [name, value] as const)
  })
}

/**
 * Separates credentials from the rest of a query (`?...` or empty). Servers differ in whether `;` separates parameters, and in which `?`
 * a query begins with, so what would be a credential there goes too.
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
  if (!/[;?#]/.test(pair)) return pair
  return pair.split(/(?=[;?#])/).filter((part) => !isCarrier(nameOf(part))).join('')
}

function nameOf (pair: string): string {
  const end = pair.indexOf('=')
  return end < 0 ? pair : pair.slice(0, end)
}
