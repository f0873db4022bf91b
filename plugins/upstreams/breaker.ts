interface BreakerRules {
  /** Failures in a row that open it. */
  readonly failures: number
  readonly firstMs: number
  readonly longestMs: number
}

/** For replies that fail and connections that break. */
export const failureRules: BreakerRules = { failures: 5, firstMs: 1_000, longestMs: 60_000 }

/** For a refused credential: it does not heal by itself, and each try is another refused call. */
export const refusalRules: BreakerRules = { failures: 1, firstMs: 30_000, longestMs: 3_600_000 }

/**
 * Keeps requests from what fails: it opens after failures in a row, longer each time, and one real request after that time
 * closes it or opens it again. Times are milliseconds of whatever clock its caller has.
 */
export class Breaker {
  readonly #rules: BreakerRules
  #failures = 0
  #opened = 0
  /** How often it had opened before the last answer, until a reply is complete. */
  #openedBefore = 0
  #until = 0
  #tried = false
  #triedAt = 0

  constructor (rules: BreakerRules) {
    this.#rules = rules
  }

  get isOpen (): boolean {
    return this.#opened > 0
  }

  /** When the next request may pass; 0 while it is closed. */
  get until (): number {
    return this.#until
  }

  /** The same, but while a trial request runs, when that was sent. */
  get dueAt (): number {
    return this.#tried ? this.#triedAt : this.#until
  }

  allows (now: number): boolean {
    return now >= this.#until
  }

  /**
   * A request goes through. True if it is the trial request, which must end in `failed`, `answered`, `succeeded` or `undecided`. If it
   * takes as long as the pause before it, another one becomes the trial: it may hang.
   */
  enter (now: number): boolean {
    if (this.#opened === 0 || (this.#tried && now < this.#until)) return false
    this.#tried = true
    this.#triedAt = now
    this.#until = now + this.#waitMs(this.#opened - 1)
    return true
  }

  /** A reply has begun: the upstream is there. If the reply breaks off, that is still one more failure in a row. */
  answered (): void {
    this.#openedBefore = Math.max(this.#openedBefore, this.#opened)
    this.#opened = 0
    this.#until = 0
    this.#tried = false
  }

  succeeded (): void {
    this.answered()
    this.completed()
  }

  /** A reply is complete: the row of failures ends. Says nothing about whether the upstream is there now. */
  completed (): void {
    this.#failures = 0
    this.#openedBefore = 0
  }

  /** `atLeastMs`: when the upstream said to come again. Requests that ran already when it opened do not lengthen the pause. */
  failed (now: number, wasTry: boolean, atLeastMs = 0): void {
    this.#failures += 1
    if (wasTry) this.#tried = false
    const opens = wasTry || (this.#opened === 0 && this.#failures >= this.#rules.failures)
    if (opens) {
      const opened = Math.max(this.#opened, this.#openedBefore)
      this.#until = now + Math.max(this.#waitMs(opened), atLeastMs)
      this.#opened = opened + 1
    } else if (this.#opened > 0) {
      this.#until = Math.max(this.#until, now + atLeastMs)
    }
  }

  /** The trial request ended without a result: its caller left. */
  undecided (wasTry: boolean): void {
    if (!wasTry) return
    this.#tried = false
    this.#until = Math.min(this.#until, this.#triedAt)
  }

  /** Another member is back, and this one may be too. */
  hurry (now: number): void {
    if (!this.#tried) this.#until = Math.min(this.#until, now)
  }

  /** Longer each time. */
  #waitMs (opened: number): number {
    const { firstMs, longestMs } = this.#rules
    return Math.min(firstMs * 2 ** opened, longestMs)
  }
}
