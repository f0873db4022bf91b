const lineFeeds = 0x0a0a
const returns = 0x0d0d
const pairs = 0x0d0a0d0a

/**
 * Follows a byte stream only as far as needed to tell whether it stands between two whole events (WHATWG: LF, CRLF or CR).
 * Keeps no piece of it: one buffer for each open stream would survive every scavenge.
 */
export class EventBoundary {
  /** The last four bytes, the newest lowest. Before the first one is a boundary too. */
  #last = lineFeeds

  push (chunk: Buffer): void {
    for (let at = Math.max(0, chunk.length - 4); at < chunk.length; at++) this.#last = this.#last << 8 | chunk.readUInt8(at)
  }

  get atBoundary (): boolean {
    const two = this.#last & 0xffff
    return two === lineFeeds || two === returns || this.#last === pairs
  }
}
