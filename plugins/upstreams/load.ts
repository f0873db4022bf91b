/** How fast past requests are forgotten: after this time about a third of them counts. */
const decayMs = 30_000

/** How busy a member of a pool is: requests that run there, and those that began recently. */
export class Load {
  #active = 0
  #recent = 0
  #at = 0
  /** The last result, because a choice asks several times at the same moment. */
  #left = 0
  #leftAt = 0
  #unanswered = 0

  get active (): number {
    return this.#active
  }

  /** Requests since the last reply that was no failure: a member that is dead, hangs or is overloaded has more than a healthy one. */
  get unanswered (): number {
    return this.#unanswered
  }

  answered (): void {
    this.#unanswered = 0
  }

  at (now: number): number {
    return this.#active + this.#recentAt(now)
  }

  begin (now: number): void {
    this.#recent = this.#left = this.#recentAt(now) + 1
    this.#at = now
    this.#active += 1
    this.#unanswered += 1
  }

  end (): void {
    this.#active -= 1
  }

  #recentAt (now: number): number {
    if (now !== this.#leftAt) {
      this.#left = this.#recent === 0 ? 0 : this.#recent * Math.exp((this.#at - now) / decayMs)
      this.#leftAt = now
    }
    return this.#left
  }
}
