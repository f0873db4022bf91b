import type { GatewayError } from '../errors/gateway-error.js'
import { overloaded } from '../errors/overloaded.js'

/** The part of a model request that this class needs. */
export interface BodyHolder {
  readonly settled: boolean
  readonly body: { heldBytes: number }
}

/** The memory that large bodies share, from their first bytes to the end of their requests. */
export class BodyMemory {
  readonly #maxBytes: number
  readonly #shed: () => void
  readonly #held: { bytes: number }

  /** `shed` is called for each body that is refused. `held`: what is taken, also by other apps. */
  constructor (maxBytes: number, shed: () => void, held = { bytes: 0 }) {
    this.#maxBytes = maxBytes
    this.#shed = shed
    this.#held = held
  }

  /** Null if there is room for so many bytes of this request; else the refusal. A single large body always has room. */
  refusal ({ body }: BodyHolder, bytes: number): GatewayError | null {
    const others = this.#held.bytes - body.heldBytes
    if (others === 0 || others + bytes <= this.#maxBytes) return null
    this.#shed()
    return overloaded()
  }

  /**
   * Takes room for a body of which `needed` bytes have come, or returns the refusal. Gives up to `wanted` for what may
   * follow, as far as other bodies leave it; bytes that come into room that was given are not asked about again.
   */
  take (holder: BodyHolder, needed: number, wanted: number): number | GatewayError {
    const refusal = this.refusal(holder, needed)
    if (refusal !== null) return refusal
    const others = this.#held.bytes - holder.body.heldBytes
    const room = others === 0 ? wanted : Math.min(wanted, this.#maxBytes - others)
    this.keep(holder, room)
    return room
  }

  /** Counts so many bytes instead of those before. Not for a settled request, which would be counted for ever. */
  keep ({ settled, body }: BodyHolder, bytes: number): void {
    if (settled) return
    this.#held.bytes += bytes - body.heldBytes
    body.heldBytes = bytes
  }

  leave ({ body }: BodyHolder): void {
    this.#held.bytes -= body.heldBytes
    body.heldBytes = 0
  }
}
