import { withTimeout } from '../core/with-timeout.js'
import type { Placed, RetryBudget } from './retry-budget.js'
import type { Surroundings } from './surroundings.js'

/** How long a retry waits for its place among all retries: enough for a burst, and short in an outage. */
const longestWaitMs = 250

/** What one request may use until it is `over`: attempts, time, and one place in the retry budget for all its retries. */
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

  /** Waits for a place in the retry budget. False if none is free in time, or the request is over. */
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
