import { backslash, quote } from './bytes.js'

/** Finds where a JSON string ends, over any number of pieces. The native search beats a loop from the first byte on. */
export class StringEnd {
  /** True where the next piece starts with an escaped byte. */
  private escaped = false

  reset (): void {
    this.escaped = false
  }

  /** `at` lies within a string. Returns the offset after its closing quote, or -1 where it goes on. */
  find (chunk: Buffer, at: number, to: number): number {
    let from = this.escaped ? at + 1 : at
    this.escaped = false
    for (;;) {
      const found = chunk.indexOf(quote, from)
      const stop = found === -1 || found >= to ? to : found
      const isEscaped = endsInEscape(chunk, from, stop)
      if (stop === to) {
        this.escaped = isEscaped
        return -1
      }
      if (!isEscaped) return stop + 1
      from = stop + 1
    }
  }
}

/** True where the byte at `to` is escaped: an odd number of backslashes stands before it. */
function endsInEscape (chunk: Buffer, from: number, to: number): boolean {
  let start = to
  while (start > from && chunk[start - 1] === backslash) start -= 1
  return (to - start) % 2 === 1
}
