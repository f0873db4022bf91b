/** The share of requests to refuse, from the delay of the event loop: it grows while the loop is late, and falls as soon as it is not. */

/** Never all: the requests let in show whether the delay has fallen. */
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

  /** Mean delay of one window. A single late one, as after a long task of other code, is no overload. */
  note (delayMs: number): void {
    const isLate = delayMs > this.#maxDelayMs
    if (isLate && this.#lateBefore) this.#share = Math.min(mostShare, Math.max(this.#share + 0.1, 1 - this.#maxDelayMs / delayMs))
    if (!isLate) this.#share = this.#share < least ? 0 : this.#share / 2
    this.#lateBefore = isLate
  }
}
