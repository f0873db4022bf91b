/** How long a reply is still read for its usage after the caller has left. */
export interface DrainOptions {
  /** Default 5,000. 0: not at all. */
  maxMs: number
  /** Default 4 MiB. */
  maxBytes: number
  /** Replies drained at the same time. Default 64. */
  maxConcurrent: number
}

export const drainDefaults: DrainOptions = { maxMs: 5_000, maxBytes: 4 * 1024 * 1024, maxConcurrent: 64 }

/** The places for drains; one for each dispatcher. */
export class DrainBudget {
  readonly options: DrainOptions
  #running = 0

  constructor (options: DrainOptions) {
    this.options = options
  }

  /** True: a place was taken, to be given back with `leave`. */
  enter (): boolean {
    const { maxMs, maxBytes, maxConcurrent } = this.options
    if (maxMs === 0 || maxBytes === 0 || this.#running >= maxConcurrent) return false
    this.#running += 1
    return true
  }

  leave (): void {
    this.#running -= 1
  }
}
