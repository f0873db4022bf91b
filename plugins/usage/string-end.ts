const quote = 0x22
const backslash = 0x5c

/** Bytes that are looked at one by one before the native search is worth its call. */
const nearBytes = 16

/** Finds where a JSON string ends, over any number of pieces. */
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
    while (from < to) {
      const near = Math.min(to, from + nearBytes)
      while (from < near) {
        const byte = chunk[from]
        if (byte === quote) return from + 1
        from += byte === backslash ? 2 : 1
      }
      if (from >= to) break
      const found = chunk.indexOf(quote, from)
      const stop = found === -1 || found >= to ? to : found
      const isEscaped = isOdd(backslashesBefore(chunk, from, stop))
      if (stop === to) {
        this.escaped = isEscaped
        return -1
      }
      if (!isEscaped) return stop + 1
      from = stop + 1
    }
    this.escaped = from > to
    return -1
  }
}

function backslashesBefore (chunk: Buffer, from: number, at: number): number {
  let start = at
  while (start > from && chunk[start - 1] === backslash) start -= 1
  return at - start
}

function isOdd (count: number): boolean {
  return count % 2 === 1
}
