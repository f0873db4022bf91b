import { DenseList } from '../core/dense-list.js'
import { resetOld } from '../core/reply/cut-reply.js'
import type { ModelCall } from '../core/call/model-call.js'

/** The model requests of one app that are not settled yet. */
export class LiveRequests {
  readonly #live = new DenseList<ModelCall>()
  readonly #waiting: Array<() => void> = []

  /** May be called repeatedly. A request whose connection was gone before it began is settled already, and would never be removed. */
  add (llm: ModelCall): void {
    if (!llm.settled) this.#live.add(llm)
  }

  /** May be called repeatedly. */
  delete (llm: ModelCall): void {
    this.#live.delete(llm)
    if (this.#live.size === 0) for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Marks all as ended by this process, before it cuts them. */
  cut (): void {
    for (const llm of [...this.#live]) {
      llm.abortedBy ??= 'gateway'
      if (llm.request !== null) resetOld(llm.request.raw)
    }
  }

  /** Resolves as soon as there are none. */
  async idle (): Promise<void> {
    if (this.#live.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}
