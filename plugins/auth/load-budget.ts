/** A token bucket: so many a second, and after a pause as many at once. */
export class LoadBudget {
  readonly #perSecond: number
  #left: number
  #since: number

  constructor (perSecond: number, now: number) {
    this.#perSecond = perSecond
    this.#left = perSecond
    this.#since = now
  }

  /** False if it is empty. `now` in milliseconds. */
  take (now: number): boolean {
    this.#left = Math.min(this.#perSecond, this.#left + (now - this.#since) * this.#perSecond / 1_000)
    this.#since = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
