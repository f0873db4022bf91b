import { resetOld } from '../core/reply/cut-reply.js'
import type { ModelCall } from '../core/call/model-call.js'

/**
 * The model requests of one app that are not settled yet. An array without gaps and not a set: a set's outgrown tables stay reachable from
 * each other, and with them every request that was in one, until the next full collection.
 */
export class LiveRequests {
  readonly #live: ModelCall[] = []
  readonly #waiting: Array<() => void> = []

  /** May be called repeatedly. A request whose connection was gone before it began is settled already, and would never be removed. */
  add (llm: ModelCall): void {
    if (llm.place < 0 && !llm.settled) llm.place = this.#live.push(llm) - 1
  }

  /** May be called repeatedly. */
  delete (llm: ModelCall): void {
    const last = this.#live.at(-1)
    if (llm.place < 0 || last === undefined) return
    this.#live[llm.place] = last
    last.place = llm.place
    this.#live.pop()
    llm.place = -1
    if (this.#live.length === 0) for (const resolve of this.#waiting.splice(0)) resolve()
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
    if (this.#live.length > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}
