/** At any time one in five of the requests that run may be a retry (Finagle's and Envoy's figure), and a few always. */
const share = 5
const always = 3

/** Hears whether a retry that waited may run. */
export type Placed = (isPlaced: boolean) => void

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
