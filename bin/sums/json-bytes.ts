/**
 * Steps over compact JSON in bytes, four at a time where that is faster. The JSON must be well-formed, and followed by `slackBytes` of
 * anything.
 */

// Not those of core/body/bytes.ts: the loops below take half as long again if they read them from another module.
const quote = 34
const backslash = 92
const comma = 44
const letterN = 110
const [openBrace, closeBrace, openBracket, closeBracket] = [123, 125, 91, 93]

const ones = 0x01010101
const highs = 0x80808080
const quotes = quote * ones
const backslashes = backslash * ones

/** How many bytes may be read behind the last one. */
export const slackBytes = 64

/** The same memory twice. Its last `slackBytes` are no part of the JSON. */
export interface Bytes {
  readonly bytes: Buffer
  readonly words: DataView
}

export function bytesOf (bytes: Buffer): Bytes {
  return { bytes, words: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) }
}

/** A text to search for, as words; the last one may overlap the one before. Null for a text that is too short or too long. */
export function wordsOf (text: Buffer): Int32Array | null {
  const { length } = text
  if (length < 4 || length > slackBytes) return null
  return Int32Array.from({ length: Math.ceil(length / 4) }, (_, at) => text.readInt32LE(Math.min(4 * at, length - 4)))
}

/** Whether the text, of so many bytes, is at this position. */
export function stands ({ words }: Bytes, from: number, text: Int32Array | null, length: number): boolean {
  if (text === null) return false
  const last = text.length - 1
  for (let at = 0; at < last; at += 1) if (words.getInt32(from + 4 * at, true) !== text[at]) return false
  return words.getInt32(from + length - 4, true) === text[last]
}

/** Position behind the value that begins at `from`. */
export function endOf (json: Bytes, from: number): number {
  const first = json.bytes[from]
  if (first === quote) return stringEnd(json, from)
  if (first === openBrace || first === openBracket) return Math.abs(nestedEnd(json, from))
  let to = from
  for (let code = first; code !== comma && code !== closeBrace; code = json.bytes[to]) to += 1
  return to
}

/** Position behind the text whose quote is at `from`. */
function stringEnd ({ bytes, words }: Bytes, from: number): number {
  let at = from + 1
  for (;;) {
    const word = words.getInt32(at, true)
    // The lowest high bit set belongs to the first byte that was zero (Hacker's Delight, 6-1).
    const [quoted, escaped] = [word ^ quotes, word ^ backslashes]
    const found = (((quoted - ones) & ~quoted) | ((escaped - ones) & ~escaped)) & highs
    if (found === 0) at += 4
    else {
      at += (31 - Math.clz32(found & -found)) >> 3
      if (bytes[at] === quote) return at + 1
      at += 2
    }
  }
}

/** Position behind the object or list that begins at `from`; negative if it contains a null. */
export function nestedEnd (json: Bytes, from: number): number {
  const { bytes } = json
  let depth = 0
  let at = from
  let sign = 1
  do {
    const code = bytes[at]
    if (code === quote) at = stringEnd(json, at)
    else {
      if (code === openBrace || code === openBracket) depth += 1
      else if (code === closeBrace || code === closeBracket) depth -= 1
      // Outside of texts, no other word of JSON has this letter.
      else if (code === letterN) sign = -1
      at += 1
    }
  } while (depth > 0)
  return sign * at
}

/** Whole numbers, which are the most frequent, are read without making a text. */
export function numberAt ({ bytes }: Bytes, from: number, to: number): number {
  let value = 0
  for (let at = from; at < to; at += 1) {
    const digit = Number(bytes[at]) - 48
    if (digit < 0 || digit > 9) return Number(bytes.toString('latin1', from, to))
    value = value * 10 + digit
  }
  return value
}
