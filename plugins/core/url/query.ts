import { credentialParameters } from '../../protocols/index.js'
import { maxDecodeRounds } from './segments.js'

/** A URL without its query. */
export function withoutQuery (url: string): string {
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

/** The query of a URL with its `?`, or empty. */
export function queryOf (url: string): string {
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark)
}

/** A query with all credentials removed. */
interface SplitQuery {
  /** Including its `?`, or empty; every other parameter byte for byte. */
  readonly query: string
  /** The values of `key`, each decoded once; null if there was none. */
  readonly keys: string[] | null
}

/** Matches whenever any spelling of a carrier is present. */
const suspect = new RegExp(`[%\\x80-\\xff]|${credentialParameters.map((name) => name.replaceAll('_', '.?')).join('|')}`, 'i')

/** No client sends more of them, and each costs as much to read as a hundred plain ones. */
const maxOdd = 256
/** Names that are not plain words, and characters at which some servers split a query. */
const odd = /[;?#]|&[\w.-]*[^\w.\-=&;?#]/g

/** True for a query (`?...` or empty) that is too expensive to take apart: its sender, who has shown no key, would block the event loop. */
export function isCrowded (query: string): boolean {
  if (query.length <= maxOdd) return false
  const found = query.matchAll(odd)
  for (let count = 0; count < maxOdd; count += 1) {
    if (found.next().done === true) return false
  }
  return found.next().done === false
}

/** Broken escapes stay. Nothing is thrown: a query has room for thousands of them, and each would cost as much as a hundred others. */
function decoded (text: string): string {
  const plain = text.replaceAll('+', ' ')
  return plain.includes('%') ? plain.replace(/%u00(?=[0-9a-f]{2})/gi, '%').replace(/(?:%[0-9a-f]{2})+/gi, utf8Of) : plain
}

/** Decodes a run of escapes, or of Node's one letter per byte. */
function utf8Of (bytes: string): string {
  if (/^%[0-7].$/.test(bytes)) return String.fromCharCode(parseInt(bytes.slice(1), 16))
  return Buffer.from(bytes.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))), 'latin1').toString()
}

/**
 * Returns a check whether some server may read a parameter's name as one of `names`, which are in lower case, with `_` for any separator.
 * Old Rack and qs remove brackets from its start, and all of them what is in brackets, qs and Spring what follows a dot, from its end; PHP
 * ends it at NUL, and reads a dot, a blank and an open bracket as `_`; ASP.NET decodes `%u006b`, and ignores invisible letters; code that
 * splits an address by hand finds it behind `?`, `&` or `;`. One expression for all: a name has room for thousands of others.
 */
export function mayBeReadAs (names: readonly string[]): (name: string) => boolean {
  const plain = new Set(names)
  const whole = names.map((name) => name.replaceAll('_', '[-_.[ ]')).join('|')
  const cut = names.map((name) => name.replaceAll('_', '[-_ ]')).join('|')
  const lax = new RegExp(`(?:^|[?&;#])[^a-z0-9_?&;#]*(?:(?:${whole}) *(?![\\w.[ -])|(?:${cut}) *[.[])`)
  return (name) => {
    return /^\w*$/.test(name) ? plain.has(name.toLowerCase()) : readingsOf(name).some((reading) => lax.test(reading))
  }
}

/** True for a parameter that some upstream may take a credential from, in any spelling. */
export const isCarrier = mayBeReadAs(credentialParameters)

function readingsOf (name: string): string[] {
  const text = fullyDecoded(name).toLowerCase()
  return /[^ -~]/.test(text) ? [text, text.replace(/\p{C}/gu, '')] : [text]
}

function fullyDecoded (text: string): string {
  let plain = text.replace(/[\x80-\xff]+/g, utf8Of)
  for (let round = 0; round < maxDecodeRounds && /[%+]/.test(plain); round += 1) {
    const before = plain
    plain = decoded(before)
    if (plain === before) break
  }
  return plain
}

/**
 * The parameters of a query (`?...` or empty) that `isMeant` selects, each with its value decoded; also those after a `;`, as some servers
 * read them.
 */
export function parametersOf (query: string, isMeant: (name: string) => boolean): Array<readonly [name: string, value: string]> {
  const pairs = query.slice(1).split('&').flatMap((pair) => [pair, ...pair.split(';').slice(1)])
  return pairs.filter((pair) => isMeant(nameOf(pair))).map((pair) => [nameOf(pair), fullyDecoded(pair.slice(nameOf(pair).length + 1))])
}

/**
 * Separates credentials from the rest of a query (`?...` or empty); of a crowded one nothing is left. Servers differ in whether `;`
 * separates parameters, and at which `?` a query begins, so credentials in such places are removed, too.
 */
export function splitKeys (query: string): SplitQuery {
  if (!suspect.test(query)) return { query, keys: null }
  if (isCrowded(query)) return { query: '', keys: null }
  const keys: string[] = []
  const kept: string[] = []
  for (const pair of query.slice(1).split('&')) {
    const name = nameOf(pair)
    const rest = isCarrier(name) ? null : withoutCarriers(pair)
    if (rest !== null) kept.push(rest)
    else if (decoded(name) === 'key') keys.push(decoded(pair.slice(name.length + 1)))
  }
  return { query: kept.length === 0 ? '' : `?${kept.join('&')}`, keys: keys.length === 0 ? null : keys }
}

/** The rest of a parameter whose own name is no carrier. */
function withoutCarriers (pair: string): string {
  if (!/[;?#]/.test(pair)) return pair
  return pair.split(/(?=[;?#])/).filter((part) => !isCarrier(nameOf(part).replace(/^[;?#]/, ''))).join('')
}

function nameOf (pair: string): string {
  const end = pair.indexOf('=')
  return end < 0 ? pair : pair.slice(0, end)
}
