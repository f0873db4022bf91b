/** How fast what was is forgotten: after this many milliseconds a third of it is left. */
const decayMs = 30_000

/** How busy a member of a pool is: what runs there, and what was begun there of late. */
export class Load {
  #active = 0
  #recent = 0
  #at = 0
  /** What was left of it when somebody asked last: whoever chooses a member asks several times for one moment. */
  #left = 0
  #leftAt = 0
  #unanswered = 0

  get active (): number {
    return this.#active
  }

  /** What was begun since the last reply that was no failure: what is dead, hangs or is overloaded has more than what is well. */
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
