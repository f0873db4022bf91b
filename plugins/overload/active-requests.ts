import type { ModelCall } from '../core/call/model-call.js'

/** Up to this share of all places, keys are not limited. */
const freePart = 0.8

export interface RunningRequests {
  /** How many each key has. */
  readonly keys: Map<string, number>
  /** The key of each, by the request's id: an outgrown map of requests would keep them alive until the next full collection. */
  readonly calls: Map<string, string>
}

export function noRequests (): RunningRequests {
  return { keys: new Map(), calls: new Map() }
}

/** The running model requests, and their keys. */
export class ActiveRequests {
  readonly #max: number
  readonly #keys: Map<string, number>
  readonly #calls: Map<string, string>

  /** The second: those of this app and of others. */
  constructor (max: number, { keys, calls }: RunningRequests) {
    this.#max = max
    this.#keys = keys
    this.#calls = calls
  }

  /** Null: it has a place, until `leave`, or needs none. Otherwise the reason for refusing it. */
  enter (llm: ModelCall): 'active' | 'key_share' | null {
    // A place taken for a request that is settled already would never be released.
    if (llm.settled || this.#calls.has(llm.id)) return null
    if (this.#calls.size >= this.#max) return 'active'
    const key = llm.auth.key?.id ?? ''
    const own = this.#keys.get(key) ?? 0
    // One more than there are keys, so that a place is free for the next key.
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
