/** The store cannot answer: its connection is down, it hangs, or too much waits for it already. Nothing is known of the request. */
export class StoreDownError extends Error {
  readonly code = 'LLM_GATEWAY_STORE_DOWN'
  /** False: it was not even asked, so that nothing can have changed. */
  readonly asked: boolean

  constructor (reason: string, { asked = true, cause }: { asked?: boolean, cause?: unknown } = {}) {
    super(`the state store ${reason}`, { cause })
    this.name = 'StoreDownError'
    this.asked = asked
  }
}
