export interface BreakerRules {
  /** Failures one after the other that open it. */
  readonly failures: number
  readonly firstMs: number
  readonly longestMs: number
}

/** For replies that fail and connections that break. */
export const failureRules: BreakerRules = { failures: 5, firstMs: 1_000, longestMs: 60_000 }

/** For a credential that was refused: it does not heal by itself, and each try is a refused call. */
export const refusalRules: BreakerRules = { failures: 1, firstMs: 30_000, longestMs: 3_600_000 }

/**
 * Keeps requests from what fails: it opens after failures in a row, longer each time, and one real request after that time
 * closes it or opens it again. Times are milliseconds of whatever clock its caller has.
 */
export class Breaker {
  readonly #rules: BreakerRules
  #failures = 0
  #opened = 0
  /** How often it had opened when an answer closed it that nothing has completed since. */
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

  /** From when on the next request may pass. 0: it is closed. */
  get until (): number {
    return this.#until
  }

  /** The same, and where one is on its way that may tell, when that was sent. */
  get dueAt (): number {
    return this.#tried ? this.#triedAt : this.#until
  }

  allows (now: number): boolean {
    return this.#opened === 0 || now >= this.#until
  }

  /**
   * A request goes through. True where it is the one that tells, and has to tell `failed`, `answered`, `succeeded` or `untold`. Where it
   * takes as long as was waited for it, another one is tried: it may hang.
   */
  enter (now: number): boolean {
    if (this.#opened === 0 || (this.#tried && now < this.#until)) return false
    this.#tried = true
    this.#triedAt = now
    this.#until = now + this.#waitMs(this.#opened - 1)
    return true
  }

  /** It is there, and may still break off what it has begun: that would be one more failure in a row. */
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

  /** What it had begun came to its end: the row of failures ends, too. Whether it is there now is told by others. */
  completed (): void {
    this.#failures = 0
    this.#openedBefore = 0
  }

  /** `atLeastMs`: the upstream told itself when to come again. What was on its way when it opened does not make it longer. */
  failed (now: number, wasTry: boolean, atLeastMs = 0): void {
    this.#failures += 1
    if (wasTry) this.#tried = false
    const opens = wasTry || (this.#opened === 0 && this.#failures >= this.#rules.failures)
    if (opens) {
      const opened = Math.max(this.#opened, this.#openedBefore)
      this.#until = now + Math.max(this.#waitMs(opened), atLeastMs)
      this.#opened = Math.min(opened + 1, 30)
    } else if (this.#opened > 0 && atLeastMs > 0) {
      this.#until = Math.max(this.#until, now + atLeastMs)
    }
  }

  /** The request that was to tell told nothing: its caller left. */
  untold (wasTry: boolean): void {
    if (!wasTry) return
    this.#tried = false
    this.#until = Math.min(this.#until, this.#triedAt)
  }

  /** Another one is back, and this one may be too. */
  hurry (now: number): void {
    if (!this.#tried) this.#until = Math.min(this.#until, now)
  }

  /** Longer each time. */
  #waitMs (opened: number): number {
    const { firstMs, longestMs } = this.#rules
    return Math.min(firstMs * 2 ** opened, longestMs)
  }
}
