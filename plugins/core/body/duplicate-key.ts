import { closeArray, closeObject, colon, openArray, openObject, quote } from './bytes.js'
import { closingQuote } from './json-text.js'

/** The first top-level key that a well-formed object has twice, in whatever spelling; null for none. */
export function duplicateKey (bytes: Buffer): string | null {
  const seen = new Set<string>()
  let depth = 0
  let text = ''
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === quote) {
      const end = closingQuote(bytes, at)
      if (depth === 1) text = bytes.toString('utf8', at, end + 1)
      at = end
    } else if (byte === openObject || byte === openArray) {
      depth += 1
    } else if (byte === closeObject || byte === closeArray) {
      depth -= 1
    } else if (byte === colon && depth === 1) {
      const key = String(JSON.parse(text))
      if (seen.has(key)) return key
      seen.add(key)
    }
  }
  return null
}
