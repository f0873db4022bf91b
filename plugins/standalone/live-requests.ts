import type { ModelCall } from '../core/model-call.js'

/** The model requests of one app that are not settled yet. */
export class LiveRequests {
  readonly #live = new Set<ModelCall>()
  readonly #waiting: Array<() => void> = []

  add (llm: ModelCall): void {
    this.#live.add(llm)
  }

  delete (llm: ModelCall): void {
    this.#live.delete(llm)
    if (this.#live.size === 0) for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Whatever breaks off now was ended by this process. */
  cut (): void {
    for (const llm of this.#live) llm.abortedBy ??= 'gateway'
  }

  /** Resolves as soon as there is none. */
  async idle (): Promise<void> {
    if (this.#live.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}
