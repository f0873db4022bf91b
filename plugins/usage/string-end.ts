import { backslash, quote } from '../core/body/bytes.js'

/** Bytes that are searched here first: most strings are so short that a native call would cost more. */
const nearBytes = 24

/** Finds where a JSON string ends, over any number of pieces. */
export class StringEnd {
  /** True where the next piece starts with an escaped byte. */
  #escaped = false

  reset (): void {
    this.#escaped = false
  }

  /** `at`: within a string. Returns the offset after its closing quote, or -1 if it continues. */
  find (chunk: Buffer, at: number, to: number): number {
    let from = this.#escaped ? at + 1 : at
    for (;;) {
      for (const near = Math.min(from + nearBytes, to); from < near; from++) {
        const byte = chunk[from]
        if (byte === quote) return this.#found(from)
        if (byte === backslash) from += 1
      }
      if (from >= to) return this.#goesOn(from > to)
      const quoteAt = chunk.indexOf(quote, from)
      const stop = quoteAt === -1 || quoteAt >= to ? to : quoteAt
      const isEscaped = endsInEscape(chunk, from, stop)
      if (stop === to) return this.#goesOn(isEscaped)
      if (!isEscaped) return this.#found(stop)
      from = stop + 1
    }
  }

  #found (at: number): number {
    this.#escaped = false
    return at + 1
  }

  #goesOn (escaped: boolean): number {
    this.#escaped = escaped
    return -1
  }
}

/** True where the byte at `to` is escaped: an odd number of backslashes stands before it. */
function endsInEscape (chunk: Buffer, from: number, to: number): boolean {
  let start = to
  while (start > from && chunk[start - 1] === backslash) start -= 1
  return (to - start) % 2 === 1
}
