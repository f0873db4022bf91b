interface StoreDownDetails {
  readonly asked?: boolean
  readonly refused?: boolean
  readonly cause?: unknown
}

/** The store cannot answer: its connection is down, it hangs, or too much waits for it. Whether it did what was asked is unknown. */
export class StoreDownError extends Error {
  readonly code = 'LLM_GATEWAY_STORE_DOWN'
  /** False if it was not even asked, so that nothing can have changed. */
  readonly asked: boolean
  /** True if the store works but could not take this one, and likely never will. */
  readonly refused: boolean

  constructor (reason: string, { asked = true, refused = false, cause }: StoreDownDetails = {}) {
    super(`the state store ${reason}`, { cause })
    this.name = 'StoreDownError'
    this.asked = asked
    this.refused = refused
  }
}

/** The message of an error, with that of the store or its connection. */
export function reasonOf (error: Error): string {
  const { message, cause } = error
  return error instanceof StoreDownError && cause instanceof Error ? `${message}: ${cause.message}` : message
}

/** After this many refusals a settlement is given up, or it would be tried for ever. */
export const maxRefusals = 50

export function isRefused (error: unknown): boolean {
  return error instanceof StoreDownError && error.refused
}
