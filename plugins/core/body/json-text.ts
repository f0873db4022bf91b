/**
 * Finds places in a JSON text without parsing it: one pass over the bytes, skipping strings with native `indexOf`. For a malformed
 * text the result is meaningless.
 */
import { backslash, closeArray, closeObject, colon, comma, openArray, openObject, quote } from './bytes.js'
import { parseJson } from './parse-json.js'

/** A range of bytes: from the first to behind the last. */
export type Span = readonly [start: number, end: number]

/** How many bytes can be compared here at the cost of one native search. */
const nearBytes = 8

/** Offset of the quote that closes the string opened at `start`, or the end of the text. */
export function closingQuote (bytes: Buffer, start: number): number {
  let from = start + 1
  for (;;) {
    const at = bytes.indexOf(quote, from)
    if (at < 0) return bytes.length
    if (bytes[at - 1] !== backslash) return at
    let run = at - 1
    while (bytes[run] === backslash) run -= 1
    if ((at - run) % 2 === 1) return at
    // Escaped quotes often follow each other: each would need a native search.
    from = at + 1
    for (const near = from + nearBytes; from < near; from += 1) {
      const byte = bytes[from]
      if (byte === quote) return from
      if (byte === backslash) from += 1
    }
  }
}

/**
 * The spans, quotes included, of all texts at a path of keys from the top (`*`: each element of an array): every occurrence,
 * however its keys are escaped. Values that are no text are left out.
 */
export function textsAt (bytes: Buffer, path: readonly string[]): Span[] {
  const found: Span[] = []
  // For each open object and array, how many keys of the path lead there, and to its elements. -1 if the path does not.
  const open: number[] = []
  const elements: number[] = []
  let next = 0
  let name: Span = [0, 0]
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === quote) {
      const end = closingQuote(bytes, at)
      if (next === path.length) found.push([at, end + 1])
      name = [at, end + 1]
      next = -1
      at = end
    } else if (byte === openObject || byte === openArray) {
      open.push(next)
      next = byte === openArray && path[next] === '*' ? next + 1 : -1
      elements.push(next)
    } else if (byte === closeObject || byte === closeArray) {
      open.pop()
      elements.pop()
      next = -1
    } else if (byte === colon) {
      const led = lastOf(open)
      const wanted = path[led]
      next = wanted !== undefined && isText(bytes, name, wanted) ? led + 1 : -1
    } else if (byte === comma) {
      next = lastOf(elements)
    }
  }
  return found
}

/** The same of several paths, written `requests.*.model`, in the order of the text. */
export function textsAtAny (bytes: Buffer, paths: readonly string[]): Span[] {
  return paths.flatMap((path) => textsAt(bytes, path.split('.'))).sort(([a], [b]) => a - b)
}

/** The text of a key at the top: the last one, as for a parser. Null if there is none. */
export function lastText (bytes: Buffer, key: string): string | null {
  const last = textsAt(bytes, [key]).at(-1)
  return last === undefined ? null : textAt(bytes, last)
}

function lastOf (list: readonly number[]): number {
  return list.at(-1) ?? -1
}

/** The decoded text at a span of a well-formed document; null if it is no text. */
export function textAt (bytes: Buffer, [start, end]: Span): string | null {
  const value = parseJson(bytes.toString('utf8', start, end))
  return typeof value === 'string' ? value : null
}

/** True if the key at a span is `wanted`, also if it is written with escapes. */
function isText (bytes: Buffer, [start, end]: Span, wanted: string): boolean {
  const written = bytes.toString('utf8', start + 1, end - 1)
  return written === wanted || (written.includes('\\') && textAt(bytes, [start, end]) === wanted)
}
