import { withTimeout } from '../core/with-timeout.js'
import type { Placed, RetryBudget } from './retry-budget.js'
import type { Surroundings } from './surroundings.js'

/** A retry waits for its place among all retries: long enough for a burst, in an outage soon over. */
const longestWaitMs = 250

/** What one request may take until it is `over`: attempts, time, and a place among the retries of all. Its retries have one place. */
export class Allowance {
  attemptsLeft: number
  readonly #budget: RetryBudget
  readonly #now: () => number
  readonly #until: number
  #retries = false
  #waiting: Placed | null = null

  constructor (attempts: number, deadlineMs: number, { budget, now }: Pick<Surroundings, 'budget' | 'now'>) {
    this.attemptsLeft = attempts
    this.#budget = budget
    this.#now = now
    this.#until = now() + deadlineMs
    budget.begin()
  }

  get isLate (): boolean {
    return this.#now() >= this.#until
  }

  leftMs (now: number): number {
    return Math.max(1, this.#until - now)
  }

  /** A secret, if it comes in the time that is left; else null. */
  async inTime (secret: Promise<string>): Promise<string | null> {
    return await withTimeout(this.leftMs(this.#now()), secret).catch(() => null)
  }

  mayRetry (): boolean {
    this.#retries ||= this.#budget.take()
    return this.#retries
  }

  /** True once it may, false where it may not for a while, or is over. */
  async place (): Promise<boolean> {
    return await new Promise((resolve) => {
      const placed = (isPlaced: boolean): void => {
        clearTimeout(timer)
        this.#budget.leave(placed)
        this.#waiting = null
        this.#retries = isPlaced
        resolve(isPlaced)
      }
      const timer = setTimeout(placed, Math.min(longestWaitMs, this.leftMs(this.#now())), false)
      this.#waiting = placed
      this.#budget.wait(placed)
    })
  }

  over (): void {
    this.#waiting?.(false)
    if (this.#retries) this.#budget.give()
    this.#budget.end()
  }
}
