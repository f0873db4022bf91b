import { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { gatewayError, type GatewayError } from './errors/gateway-error.js'

type Done = (...result: [error: null, body: Buffer] | [error: GatewayError, body: null]) => void

/** A declared length is believed up to here; the rest is reserved once this much has really come. */
const eagerBytes = 1024 * 1024

const nothing: Buffer = Buffer.alloc(0)

/**
 * Reads a request's whole body into one buffer, each byte copied at most once, or not at all where it comes in one
 * piece. `contentLength` is what the caller declared, null where it did not; a longer body than `maxBytes` is refused
 * by its declared length before a byte is read, or as soon as it passes the cap.
 * `done` is called once: `body_too_large`, or `request_aborted` where the caller left before the end.
 * What is still on its way after a refusal is not read here: `refuse` drains it within bounds.
 */
export function collectBody (stream: Readable, contentLength: number | null, maxBytes: number, done: Done): void {
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
    if (length === 0) {
      body = bytes
    } else {
      if (needed > body.length) body = grown(body, length, roomFor(needed, contentLength))
      bytes.copy(body, length)
    }
    length = needed
  }

  function onEnd (): void {
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

function roomFor (needed: number, contentLength: number | null): number {
  if (contentLength === null || contentLength < needed) return needed * 2
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
