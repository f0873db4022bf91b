/** At any time one in five of the requests that run may be a retry (Finagle's and Envoy's figure), and a few always. */
const share = 5
const always = 3

/** Bounds retries by what runs: an outage must not multiply the load. One for each process. */
export class RetryBudget {
  #running = 0
  #retries = 0

  begin (): void {
    this.#running += 1
  }

  end (): void {
    this.#running -= 1
  }

  /** True where one more retry may run; it then has to `give` its place back. */
  take (): boolean {
    if (this.#retries >= Math.max(always, Math.floor(this.#running / share))) return false
    this.#retries += 1
    return true
  }

  give (): void {
    this.#retries -= 1
  }
}
