/** At any time one in five of the requests that run may be a retry (Finagle's and Envoy's figure), and a few always. */
const share = 5
const always = 3

type Placed = (isPlaced: boolean) => void

/** Bounds retries by what runs: an outage must not multiply the load. One for each process. */
export class RetryBudget {
  #running = 0
  #retries = 0
  /** In the order in which they came. */
  readonly #waiting = new Set<Placed>()

  begin (): void {
    this.#running += 1
  }

  end (): void {
    this.#running -= 1
  }

  /** Told with the next place that is free. Who waits runs not: a queue of retries must not make room for more of them. */
  wait (placed: Placed): void {
    this.#waiting.add(placed)
    this.#running -= 1
  }

  leave (placed: Placed): void {
    this.#waiting.delete(placed)
    this.#running += 1
  }

  /** True where one more retry may run; it then has to `give` its place back. */
  take (): boolean {
    if (this.#retries >= Math.max(always, Math.floor(this.#running / share))) return false
    this.#retries += 1
    return true
  }

  give (): void {
    this.#retries -= 1
    const [first] = this.#waiting
    if (first !== undefined && this.take()) first(true)
  }
}

/** What one request takes of the budget, from its start until it is `over`. Its retries have one place. */
export class BudgetShare {
  readonly #budget: RetryBudget
  #retries = false
  #waiting: Placed | null = null

  constructor (budget: RetryBudget) {
    this.#budget = budget
    budget.begin()
  }

  mayRetry (): boolean {
    this.#retries ||= this.#budget.take()
    return this.#retries
  }

  /** True once it may, false where it may not within `forMs` milliseconds, or is over. */
  async place (forMs: number): Promise<boolean> {
    return await new Promise((resolve) => {
      const placed = (isPlaced: boolean): void => {
        clearTimeout(timer)
        this.#budget.leave(placed)
        this.#waiting = null
        this.#retries = isPlaced
        resolve(isPlaced)
      }
      const timer = setTimeout(placed, forMs, false)
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
