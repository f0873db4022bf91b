import { IncomingMessage } from 'node:http'
import { Http2ServerRequest } from 'node:http2'
import type { Readable } from 'node:stream'
import { gatewayError, type GatewayError } from './errors/gateway-error.js'
import { restWhenShareIsTaken } from './loop-share.js'

type Done = (...result: [error: null, body: Buffer] | [error: GatewayError, body: null]) => void

/** Tells readers of large bodies to wait while there are too many already. */
export interface Pace {
  readonly isFull: boolean
  /** Calls once that is over. */
  readonly onRoom: (goOn: () => void) => void
}

/** A body beyond this is large: what is done with it is done beside the loop. Its bytes lie in memory of their own. */
export const largeBytes = 256 * 1024

/** A declared length is believed up to here; the rest is reserved once this much has really come. */
const eagerBytes = 1024 * 1024

const nothing: Buffer = Buffer.alloc(0)

/**
 * Reads a request's whole body into one buffer, each byte copied at most once, or not at all where it is small and comes in one
 * piece. `contentLength` is what the caller declared, null where it did not; a longer body than `maxBytes` is refused
 * by its declared length before a byte is read, or as soon as it passes the cap.
 * `done` is called once: `body_too_large`, or `request_aborted` where the caller left before the end.
 * What is still on its way after a refusal is not read here: `refuse` drains it within bounds. A large body is read as `pace` has room.
 */
export function collectBody (stream: Readable, contentLength: number | null, maxBytes: number, done: Done, pace: Pace | null = null): void {
  let body = nothing
  let length = 0
  // Instead of taking the listeners off again at each end, which costs as much as all the reading of a small body.
  let isOver = false

  function onData (chunk: Buffer | string): void {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    const needed = length + bytes.length
    if (needed > maxBytes) {
      isOver = true
      body = nothing
      stream.off('data', onData)
      done(tooLarge(maxBytes), null)
      return
    }
    if (length === 0 && needed <= largeBytes) {
      body = bytes
    } else {
      if (needed > body.length) body = grown(body, length, Math.min(roomFor(needed, contentLength), maxBytes))
      bytes.copy(body, length)
    }
    length = needed
    if (length <= largeBytes) return
    if (pace?.isFull === true) {
      stream.pause()
      pace.onRoom(() => stream.resume())
    } else {
      restWhenShareIsTaken(stream, bytes.length)
    }
  }

  function onEnd (): void {
    // A client of Node's ends a stream right before it resets it: both mostly come in one turn, and the reset is told after the end.
    if (stream instanceof Http2ServerRequest) setImmediate(finish)
    else finish()
  }

  function finish (): void {
    if (isOver) return
    isOver = true
    done(null, length === body.length ? body : body.subarray(0, length))
  }

  function onBreak (): void {
    if (isOver) return
    isOver = true
    done(gatewayError('request_aborted'), null)
  }

  if (contentLength !== null && contentLength > maxBytes) {
    done(tooLarge(maxBytes), null)
    return
  }
  if (stream.destroyed) {
    onBreak()
    return
  }
  stream.on('data', onData)
  stream.on('end', onEnd)
  stream.on('close', onBreak)
  // Stays for good: a stream may fail after it was refused, and an error that nobody hears ends the process. A request of
  // Node's own tells its errors only where somebody listens.
  if (!(stream instanceof IncomingMessage)) stream.on('error', ignore)
}

/** A stream that fails closes, too. */
function ignore (): void {}

/** A declared body length; null for none. Node has checked its digits. */
export function declaredLength (header: string | undefined): number | null {
  return header === undefined ? null : Number(header)
}

/** What is reserved and not written to takes no memory; what is copied again, in one turn, takes time. */
function roomFor (needed: number, contentLength: number | null): number {
  if (contentLength === null || contentLength < needed) return needed * (needed > eagerBytes ? 8 : 2)
  return needed > eagerBytes ? contentLength : Math.min(contentLength, eagerBytes)
}

function grown (body: Buffer, length: number, room: number): Buffer {
  const larger = Buffer.allocUnsafe(room)
  body.copy(larger, 0, 0, length)
  return larger
}

function tooLarge (maxBodyBytes: number): GatewayError {
  return gatewayError('body_too_large', { maxBodyBytes })
}
