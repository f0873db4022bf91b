/** A share of requests to refuse, from how late the event loop is: more the longer it is late, less as soon as it is not. */

/** Never all: who is let in tells whether it goes again. */
const mostShare = 0.98
const least = 0.05

export class Pressure {
  readonly #maxDelayMs: number
  #lateBefore = false
  #share = 0

  constructor (maxDelayMs: number) {
    this.#maxDelayMs = maxDelayMs
  }

  /** From 0 to 1. */
  get share (): number {
    return this.#share
  }

  /** One window's delay on average. A single late one, as after a long task of somebody else's, is no overload. */
  note (delayMs: number): void {
    const isLate = delayMs > this.#maxDelayMs
    if (isLate && this.#lateBefore) this.#share = Math.min(mostShare, Math.max(this.#share + 0.1, 1 - this.#maxDelayMs / delayMs))
    if (!isLate) this.#share = this.#share < least ? 0 : this.#share / 2
    this.#lateBefore = isLate
  }
}
