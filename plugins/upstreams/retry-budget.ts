/** At most one in five running requests may be a retry (as in Finagle and Envoy), but a few always may. */
const share = 5
const always = 3

/** Called with whether a retry that waited may run. */
export type Placed = (isPlaced: boolean) => void

/** Bounds retries by the running requests, so that an outage does not multiply the load. One for each app. */
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

  /** Calls `placed` with the next free place. A waiting retry does not count as running, or a queue of them would make room for more. */
  wait (placed: Placed): void {
    this.#waiting.add(placed)
    this.#running -= 1
  }

  leave (placed: Placed): void {
    this.#waiting.delete(placed)
    this.#running += 1
  }

  /** True if one more retry may run; it must `give` its place back. */
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
