/**
 * Reads one HTTP/1.1 reply after another from raw bytes, whatever the splits, and compares the body with what was
 * expected as it passes: nothing is kept but the position. As small as a load generator's reader has to be.
 */

const headEnd = Buffer.from('\r\n\r\n')

type State = 'head' | 'counted' | 'size' | 'chunk' | 'line'

export class ReplyReader {
  status = 0
  bodyBytes = 0
  /** Calls of `push` that brought body bytes. */
  bodyReads = 0
  #state: State = 'head'
  #carry: Buffer | null = null
  #left = 0
  #expected: Buffer | null = null
  #line = ''
  #sawBody = false

  /** Readies the reader for the next reply. Null takes any body. */
  expect (body: Buffer | null): void {
    this.status = 0
    this.bodyBytes = 0
    this.bodyReads = 0
    this.#state = 'head'
    this.#expected = body
    this.#line = ''
  }

  /** True once the reply is complete. Throws where the body is not the expected one. */
  push (bytes: Buffer): boolean {
    this.#sawBody = false
    let at = 0
    if (this.#state === 'head') {
      const start = this.#head(bytes)
      if (start < 0) return false
      at = start
    }
    const done = this.#state === 'counted' ? this.#counted(bytes, at) : this.#chunked(bytes, at)
    if (this.#sawBody) this.bodyReads += 1
    if (done && this.#expected !== null && this.bodyBytes !== this.#expected.length) {
      throw new Error(`the reply has ${this.bodyBytes} bytes instead of ${this.#expected.length}`)
    }
    return done
  }

  /** Position of the body in `bytes`, or -1 while the head is incomplete. */
  #head (bytes: Buffer): number {
    const whole = this.#carry === null ? bytes : Buffer.concat([this.#carry, bytes])
    const split = whole.indexOf(headEnd)
    if (split < 0) {
      this.#carry = Buffer.from(whole)
      return -1
    }
    const carried = this.#carry?.length ?? 0
    this.#carry = null
    const head = whole.toString('latin1', 0, split + 2)
    this.status = Number(head.slice(9, 12))
    if (this.status !== 200) this.#expected = null
    const length = /\r\ncontent-length: (\d+)\r/i.exec(head)
    this.#state = length === null ? 'size' : 'counted'
    this.#left = Number(length?.[1] ?? 0)
    return split + 4 - carried
  }

  #counted (bytes: Buffer, at: number): boolean {
    const end = Math.min(bytes.length, at + this.#left)
    this.#body(bytes, at, end)
    this.#left -= end - at
    return this.#left === 0
  }

  #chunked (bytes: Buffer, from: number): boolean {
    let at = from
    while (at < bytes.length) {
      if (this.#state === 'chunk') {
        const end = Math.min(bytes.length, at + this.#left)
        this.#body(bytes, at, end)
        this.#left -= end - at
        at = end
        if (this.#left === 0) this.#state = 'line'
        continue
      }
      const lineEnd = bytes.indexOf(10, at)
      const stop = lineEnd < 0 ? bytes.length : lineEnd + 1
      this.#line += bytes.toString('latin1', at, stop)
      at = stop
      if (lineEnd < 0) return false
      if (this.#endOfLine()) return true
    }
    return false
  }

  /** Takes one line between chunks. True at the empty line after the last chunk. */
  #endOfLine (): boolean {
    const line = this.#line
    this.#line = ''
    if (this.#state === 'line') {
      this.#state = 'size'
      return this.#left < 0
    }
    this.#left = parseInt(line, 16)
    this.#state = 'chunk'
    if (this.#left === 0) {
      this.#state = 'line'
      this.#left = -1
    }
    return false
  }

  #body (bytes: Buffer, from: number, to: number): void {
    if (to === from) return
    this.#sawBody = true
    const expected = this.#expected
    const at = this.bodyBytes
    this.bodyBytes += to - from
    if (expected === null) return
    if (this.bodyBytes > expected.length || bytes.compare(expected, at, this.bodyBytes, from, to) !== 0) {
      throw new Error(`the reply differs from what the upstream sent, near byte ${at}`)
    }
  }
}
