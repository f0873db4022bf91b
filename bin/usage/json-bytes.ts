/**
 * Steps over compact JSON in bytes, four at a time where that pays. Whoever asks knows that the JSON is whole; `slackBytes` of anything
 * stand behind it.
 */

// Not those of core/body/bytes.ts: the loops below take half as long again where they read them from another module.
const quote = 34
const backslash = 92
const comma = 44
const letterN = 110
const [openBrace, closeBrace, openBracket, closeBracket] = [123, 125, 91, 93]

const ones = 0x01010101
const highs = 0x80808080
const quotes = quote * ones
const backslashes = backslash * ones

/** What may be read behind the last byte that is asked for. */
export const slackBytes = 64

/** The same memory twice. The last `slackBytes` of it are none of the JSON. */
export interface Bytes {
  readonly bytes: Buffer
  readonly words: DataView
}

export function bytesOf (bytes: Buffer): Bytes {
  return { bytes, words: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) }
}

/** A text to look for, as words; the last one may overlap the one before. Null for a text that is too short or too long for that. */
export function wordsOf (text: Buffer): Int32Array | null {
  const { length } = text
  if (length < 4 || length > slackBytes) return null
  return Int32Array.from({ length: Math.ceil(length / 4) }, (_, at) => text.readInt32LE(Math.min(4 * at, length - 4)))
}

/** Whether a text of so many bytes stands there. */
export function stands ({ words }: Bytes, from: number, text: Int32Array | null, length: number): boolean {
  if (text === null) return false
  const last = text.length - 1
  for (let at = 0; at < last; at += 1) if (words.getInt32(from + 4 * at, true) !== text[at]) return false
  return words.getInt32(from + length - 4, true) === text[last]
}

/** Behind the value that begins at `from`. */
export function endOf (json: Bytes, from: number): number {
  const first = json.bytes[from]
  if (first === quote) return stringEnd(json, from)
  if (first === openBrace || first === openBracket) return Math.abs(nestedEnd(json, from))
  let to = from
  for (let code = first; code !== comma && code !== closeBrace; code = json.bytes[to]) to += 1
  return to
}

/** Behind the text whose quote stands at `from`. */
function stringEnd ({ bytes, words }: Bytes, from: number): number {
  let at = from + 1
  for (;;) {
    const word = words.getInt32(at, true)
    // The lowest high bit that is set is that of the first byte which is none but a zero (Hacker's Delight, 6-1).
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

/** Behind the object or list that begins at `from`; negative where it holds a null. */
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
      // No other word of JSON outside of texts has this letter.
      else if (code === letterN) sign = -1
      at += 1
    }
  } while (depth > 0)
  return sign * at
}

/** Whole numbers, of which there are most, without a text of their own. */
export function numberAt ({ bytes }: Bytes, from: number, to: number): number {
  let value = 0
  for (let at = from; at < to; at += 1) {
    const digit = Number(bytes[at]) - 48
    if (digit < 0 || digit > 9) return Number(bytes.toString('latin1', from, to))
    value = value * 10 + digit
  }
  return value
}
