interface StoreDownDetails {
  readonly asked?: boolean
  readonly refused?: boolean
  readonly cause?: unknown
}

/** The store cannot answer: its connection is down, it hangs, or too much waits for it already. Nothing is known of the request. */
export class StoreDownError extends Error {
  readonly code = 'LLM_GATEWAY_STORE_DOWN'
  /** False: it was not even asked, so that nothing can have changed. */
  readonly asked: boolean
  /** True: the store is there and takes others; this one it could not take, and likely never will. */
  readonly refused: boolean

  constructor (reason: string, { asked = true, refused = false, cause }: StoreDownDetails = {}) {
    super(`the state store ${reason}`, { cause })
    this.name = 'StoreDownError'
    this.asked = asked
    this.refused = refused
  }
}

/** What an error says, with what the store or its connection said. */
export function reasonOf (error: Error): string {
  const { message, cause } = error
  return error instanceof StoreDownError && cause instanceof Error ? `${message}: ${cause.message}` : message
}

/** A settlement that was refused so often is put aside: whatever is wrong with it must not be met for ever. */
export const maxRefusals = 20

export function isRefused (error: unknown): boolean {
  return error instanceof StoreDownError && error.refused
}
