import { closeArray, closeObject, comma, isSpace, openArray, openObject, quote } from '../core/body/bytes.js'
import type { StringEnd } from './string-end.js'

/** Finds the end of a JSON value without parsing it, over any number of pieces. */
export class ValueEnd {
  /** True for a number, `true`, `false` and `null`, which nothing closes. */
  isScalar = false
  readonly #string: StringEnd
  #inString = false
  /** Open containers. */
  #depth = 0

  constructor (string: StringEnd) {
    this.#string = string
  }

  /** `at`: the first byte of the value. Returns the offset after its last byte, or -1 if it continues. */
  begin (chunk: Buffer, at: number, to: number): number {
    const byte = chunk[at]
    this.#depth = 0
    this.isScalar = false
    this.#inString = byte === quote
    if (this.#inString) return this.#string.find(chunk, at + 1, to)
    if (byte === openObject || byte === openArray) return this.#skip(chunk, at, to)
    this.isScalar = true
    return findScalarEnd(chunk, at, to)
  }

  /** The same for the next piece. */
  goOn (chunk: Buffer, at: number, to: number): number {
    if (this.isScalar) return findScalarEnd(chunk, at, to)
    if (!this.#inString) return this.#skip(chunk, at, to)
    const end = this.#string.find(chunk, at, to)
    if (end === -1 || this.#depth === 0) return end
    this.#inString = false
    return this.#skip(chunk, end, to)
  }

  /** Counts brackets outside of strings. */
  #skip (chunk: Buffer, at: number, to: number): number {
    let depth = this.#depth
    for (let from = at; from < to; from++) {
      const byte = chunk[from]
      if (byte === quote) {
        const end = this.#string.find(chunk, from + 1, to)
        if (end === -1) {
          this.#inString = true
          break
        }
        from = end - 1
      } else if (byte === openObject || byte === openArray) depth += 1
      else if ((byte === closeObject || byte === closeArray) && --depth === 0) return from + 1
    }
    this.#depth = depth
    return -1
  }
}

function findScalarEnd (chunk: Buffer, at: number, to: number): number {
  for (let from = at; from < to; from++) {
    const byte = chunk[from]
    if (byte === comma || byte === closeObject || byte === closeArray || isSpace(byte)) return from
  }
  return -1
}
