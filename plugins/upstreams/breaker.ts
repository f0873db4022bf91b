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
  #until = 0
  #tried = false

  constructor (rules: BreakerRules) {
    this.#rules = rules
  }

  get isOpen (): boolean {
    return this.#opened > 0
  }

  /** When the next try is due. 0: it is closed. */
  get until (): number {
    return this.#until
  }

  /** Open, with a request on its way that will tell. */
  get isTried (): boolean {
    return this.#tried
  }

  allows (now: number): boolean {
    return this.#opened === 0 || (now >= this.#until && !this.#tried)
  }

  /** A request goes through. True where it is the one that tells, and has to tell `failed`, `succeeded` or `untold`. */
  enter (): boolean {
    if (this.#opened === 0 || this.#tried) return false
    this.#tried = true
    return true
  }

  succeeded (): void {
    this.#failures = 0
    this.#opened = 0
    this.#until = 0
    this.#tried = false
  }

  /** `atLeastMs`: the upstream told itself when to come again. What was on its way when it opened does not make it longer. */
  failed (now: number, wasTry: boolean, atLeastMs = 0): void {
    this.#failures += 1
    if (wasTry) this.#tried = false
    const opens = wasTry || (this.#opened === 0 && this.#failures >= this.#rules.failures)
    if (opens) {
      const { firstMs, longestMs } = this.#rules
      this.#until = now + Math.max(Math.min(firstMs * 2 ** this.#opened, longestMs), atLeastMs)
      this.#opened = Math.min(this.#opened + 1, 30)
    } else if (this.#opened > 0 && atLeastMs > 0) {
      this.#until = Math.max(this.#until, now + atLeastMs)
    }
  }

  /** The request that was to tell told nothing: its caller left. */
  untold (wasTry: boolean): void {
    if (wasTry) this.#tried = false
  }

  /** Another one is back, and this one may be too. */
  hurry (now: number): void {
    this.#until = Math.min(this.#until, now)
  }
}
