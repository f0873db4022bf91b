import type { ModelCall } from '../core/call/model-call.js'

/** Up to this part of all places nobody asks whose they are. */
const freePart = 0.8

/** The model requests that run, and whose they are. */
export class ActiveRequests {
  readonly #max: number
  readonly #keys = new Map<string, number>()
  /** By id: an outgrown map would keep whole requests until the next full collection. */
  readonly #calls = new Map<string, string>()

  constructor (max: number) {
    this.#max = max
  }

  /** Null: it has a place, until `leave`, or needs none. Else why not. */
  enter (llm: ModelCall): 'active' | 'key_share' | null {
    // A place that is taken for a request that is settled already would never be free again.
    if (llm.settled || this.#calls.has(llm.id)) return null
    if (this.#calls.size >= this.#max) return 'active'
    const key = llm.auth.key?.id ?? ''
    const own = this.#keys.get(key) ?? 0
    // One more than there are, so that a place is free for a key that comes next.
    if (this.#calls.size >= this.#max * freePart && own >= this.#max / (this.#keys.size + 1)) return 'key_share'
    this.#calls.set(llm.id, key)
    this.#keys.set(key, own + 1)
    return null
  }

  leave (llm: ModelCall): void {
    const key = this.#calls.get(llm.id)
    if (key === undefined) return
    this.#calls.delete(llm.id)
    const rest = Number(this.#keys.get(key)) - 1
    if (rest === 0) this.#keys.delete(key)
    else this.#keys.set(key, rest)
  }
}
