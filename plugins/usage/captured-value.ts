import { backslash, quote, space, standsAt } from '../core/body/bytes.js'
import { parseJson } from '../core/body/parse-json.js'

/** The longest value that is kept: a usage object with a hundred iterations is half as long. */
const maxValueBytes = 64 * 1024

/** Collects the bytes of one JSON value that may arrive in pieces. Never keeps more than its bound. */
export class CapturedValue {
  /** Where the value, or the rest of it, starts and ends in the newest piece. */
  start = 0
  end = 0
  /** Where it started in its own piece. */
  origin = 0
  #parts: Buffer[] = []
  #size = 0

  begin (at: number): void {
    this.start = at
    this.origin = at
    this.#parts = []
    this.#size = 0
  }

  /** The piece ends within the value. Bytes are copied, because the piece may be reused. */
  keep (chunk: Buffer, to: number): void {
    const bytes = to - this.start
    if (this.#size + bytes <= maxValueBytes) this.#parts.push(Buffer.from(chunk.subarray(this.start, to)))
    else this.#parts = []
    this.#size += bytes
  }

  /** The parsed value; undefined if it is too long or no JSON. */
  finish (chunk: Buffer, to: number): unknown {
    this.end = to
    if (this.tooLarge) return undefined
    if (this.#size === 0) return parseBytes(chunk, this.start, to)
    const bytes = Buffer.concat([...this.#parts, chunk.subarray(this.start, to)])
    this.#parts = []
    return parseBytes(bytes, 0, bytes.length)
  }

  /** True if a piece that ended within the value had more of it than its first byte. */
  get hasBegun (): boolean {
    return this.#size > 1
  }

  get tooLarge (): boolean {
    return this.#size + this.end - this.start > maxValueBytes
  }
}

/** `parseJson` of bytes, with a shortcut for plain strings and nulls, which are most values. */
function parseBytes (bytes: Buffer, from: number, to: number): unknown {
  const first = bytes[from]
  if (first === quote && hasNoEscapes(bytes, from + 1, to - 1)) return bytes.toString('utf8', from + 1, to - 1)
  return to - from === 4 && standsAt('null', bytes, from) ? null : parseJson(bytes.toString('utf8', from, to))
}

/** True if the bytes of a string need no unescaping. */
function hasNoEscapes (bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const byte = bytes[at]
    if (byte === undefined || byte < space || byte === backslash) return false
  }
  return true
}
