/** How long a reply is still read for its usage after the caller has left. */
export interface DrainOptions {
  /**
   * How long to read on, in milliseconds. 0 for not at all.
   * @defaultValue 5,000
   */
  maxMs: number
  /**
   * How much of a reply to read on, in bytes.
   * @defaultValue 4 MiB
   */
  maxBytes: number
  /**
   * Replies that are read on at the same time.
   * @defaultValue 64
   */
  maxConcurrent: number
}

export const drainDefaults: DrainOptions = { maxMs: 5_000, maxBytes: 4 * 1024 * 1024, maxConcurrent: 64 }

/** One reply that is read only for its usage. */
export interface Drain {
  /** Counts bytes; false once the bound is reached. */
  readonly goesOn: (bytes: number) => boolean
  readonly end: () => void
}

/** The places for drains; one for each dispatcher. */
export class DrainBudget {
  readonly #options: DrainOptions
  #running = 0

  constructor (options: DrainOptions) {
    this.#options = options
  }

  /** Null where no place is free. `timeUp` is called once, unless the drain ends before. */
  begin (timeUp: () => void): Drain | null {
    const { maxMs, maxBytes, maxConcurrent } = this.#options
    if (maxMs === 0 || maxBytes === 0 || this.#running >= maxConcurrent) return null
    this.#running += 1
    const timer = setTimeout(timeUp, maxMs).unref()
    let read = 0
    return {
      goesOn: (bytes) => {
        read += bytes
        return read < maxBytes
      },
      end: () => {
        clearTimeout(timer)
        this.#running -= 1
      },
    }
  }
}
