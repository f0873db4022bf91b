import { isAscii, isUtf8, transcode } from 'node:buffer'
import { duplicateKey } from '../core/body/duplicate-key.js'
import { isObject } from '../core/body/json-object.js'
import { clipped } from '../core/errors/clipped.js'
import { refused, type BodyRefusal } from './body-refusal.js'
import { countMembers, type Bounds } from './scan.js'

/** Above this size, decoding by way of UTF-16 is faster (measured on Node 20: 5 ms against 20 ms for 10 MB). */
const transcodeBytes = 4096

/** Boxed, so that it cannot be confused with a body that is `null`, or that looks like a `BodyRefusal`. */
interface Parsed {
  readonly json: unknown
}

/**
 * Parses JSON, or returns the refusal. Stricter than `JSON.parse` where two readers of the same bytes could differ: no byte order mark,
 * only valid UTF-8, no top-level key twice (RFC 8259 leaves open which one counts). The bounds are checked before parsing: a million
 * brackets block the parser for 0.4 s, and eleven million empty objects for ten.
 */
export function readJson (bytes: Buffer, bounds: Bounds): Parsed | BodyRefusal {
  if (bytes.length === 0) return refused('empty', 'missing_body')
  if (hasByteOrderMark(bytes)) return invalid('bom', 'it starts with a byte order mark')
  const ascii = isAscii(bytes)
  if (!ascii && !isUtf8(bytes)) return invalid('utf8', 'it is not valid UTF-8')
  const members = countMembers(bytes, bounds)
  if (members === 'depth') return invalid('depth', `it is nested deeper than ${bounds.maxDepth} levels`)
  if (members === 'values') return invalid('values', `it holds more than ${bounds.maxValues} values`)
  let json: unknown
  try {
    json = JSON.parse(ascii ? bytes.toString('latin1') : decode(bytes))
  } catch (error) {
    return invalid('json', syntaxReason(String(error)))
  }
  // Every member of a well-formed object has one colon; the parsed object has one key for each distinct name.
  if (isObject(json) && Object.keys(json).length !== members) return duplicated(bytes)
  return { json }
}

function hasByteOrderMark (bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

function decode (bytes: Buffer): string {
  return bytes.length < transcodeBytes ? bytes.toString() : transcode(bytes, 'utf8', 'utf16le').toString('utf16le')
}

function invalid (keyword: string, reason: string): BodyRefusal {
  return refused(keyword, 'invalid_json', { reason })
}

function duplicated (bytes: Buffer): BodyRefusal {
  const key = clipped(String(duplicateKey(bytes)))
  return refused('duplicate_key', 'invalid_json', { reason: `the key ${JSON.stringify(key)} stands in it twice` }, key)
}

/** The parser's message without what it quotes of the text, except for the one unexpected character. */
function syntaxReason (message: string): string {
  return /^SyntaxError: (Unexpected token '.+?'(?=,)|[^"]+)/s.exec(message)?.[1] ?? 'unexpected text'
}
