import { joined, lineFeed } from '../core/body/bytes.js'
import type { EventStreamReader } from './event-stream-reader.js'

/** Bytes of an unfinished event that are held back before it is passed on as an ordinary one; the extra event has a tenth. */
const maxHeldBytes = 16 * 1024

/**
 * Removes the one event from a stream that the gateway asked for and the caller did not. Every other byte passes at once
 * and unchanged. Only an incomplete event waits for its end, as long as it may be the extra one: no client can act
 * on half an event.
 */
export class EventSieve {
  readonly #reader: EventStreamReader
  #held: Buffer[] = []
  #heldBytes = 0
  /** True if the current event was passed on before its end. */
  #letGo = false
  /** True if the newest whole event was removed. */
  #dropped = false
  /** Offsets in the current piece: the start of what is kept, and the start of the current event. */
  #keepFrom = 0
  #eventFrom = 0
  #out: Buffer[] = []

  constructor (reader: EventStreamReader) {
    this.#reader = reader
  }

  /** What is left of a piece, null for nothing. */
  push (chunk: Buffer): Buffer | null {
    if (this.#reader.passByAll(chunk)) return chunk
    // The second half of a CRLF goes where the event before it went.
    this.#eventFrom = this.#reader.atHalfEnd && chunk[0] === lineFeed ? 1 : 0
    this.#keepFrom = this.#dropped ? this.#eventFrom : 0
    this.#reader.read(chunk, (end, isExtra) => this.#endEvent(chunk, end, isExtra && !this.#letGo))
    this.#endPiece(chunk)
    const out = this.#out
    // A reference here would keep a piece alive as long as the stream.
    this.#out = []
    return out.length === 0 ? null : joined(out)
  }

  /** What was held back of an event that never ended, null if it was the extra one. */
  end (isExtra: boolean): Buffer | null {
    return isExtra || this.#held.length === 0 ? null : joined(this.#held)
  }

  #endEvent (chunk: Buffer, end: number, isExtra: boolean): void {
    if (isExtra) {
      this.#keep(chunk, this.#eventFrom)
      this.#keepFrom = end
    } else this.#out.push(...this.#held)
    this.#held = []
    this.#heldBytes = 0
    this.#letGo = false
    this.#dropped = isExtra
    this.#eventFrom = end
  }

  #endPiece (chunk: Buffer): void {
    this.#heldBytes += chunk.length - this.#eventFrom
    this.#letGo ||= !(this.#reader.undecided && this.#heldBytes <= maxHeldBytes)
    if (this.#letGo) {
      this.#out.push(...this.#held)
      this.#held = []
      this.#eventFrom = chunk.length
    }
    this.#keep(chunk, this.#eventFrom)
    if (this.#eventFrom < chunk.length) this.#held.push(chunk.subarray(this.#eventFrom))
  }

  #keep (chunk: Buffer, to: number): void {
    if (this.#keepFrom === 0 && to === chunk.length) this.#out.push(chunk)
    else if (to > this.#keepFrom) this.#out.push(chunk.subarray(this.#keepFrom, to))
  }
}
