/** Follows a byte stream only as far as needed to tell whether it stands between two whole events (WHATWG: LF, CRLF or CR). */
export class EventBoundary {
  #last: Buffer = Buffer.alloc(0)

  push (chunk: Buffer): void {
    this.#last = chunk.length >= 4 ? chunk : Buffer.concat([this.#last.subarray(-4), chunk])
  }

  /** True before the first byte too. */
  get atBoundary (): boolean {
    return this.#last.length === 0 || /(?:\n\n|\r\r|\r\n\r\n)$/.test(this.#last.subarray(-4).toString('latin1'))
  }
}
