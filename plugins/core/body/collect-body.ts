import { IncomingMessage } from 'node:http'
import { Http2ServerRequest } from 'node:http2'
import type { Readable } from 'node:stream'
import type { BodyHolder, BodyMemory } from './body-memory.js'
import { gatewayError, type GatewayError } from '../errors/gateway-error.js'
import { restWhenShareIsTaken } from './loop-share.js'

type Done = (...result: [error: null, body: Buffer] | [error: GatewayError, body: null]) => void

/** Tells readers of large bodies to wait while there are too many already. */
export interface Pace {
  readonly isFull: boolean
  /** Calls once that is over. */
  readonly onRoom: (goOn: () => void) => void
}

/** Whose body it is. */
export interface BodyOwner extends BodyHolder {
  readonly body: { readonly maxBytes: number, heldBytes: number }
}

/** What large bodies share; null for no bounds. */
export interface SharedBounds {
  readonly bodyPace: Pace | null
  readonly bodyMemory: BodyMemory | null
}

/** A body beyond this is large: what is done with it is done beside the loop. Its bytes lie in memory of their own. */
export const largeBytes = 256 * 1024

/** A declared length is believed up to here; the rest is reserved once this much has really come. */
const eagerBytes = 1024 * 1024

const nothing: Buffer = Buffer.alloc(0)

/**
 * Reads a request's whole body into one buffer, each byte copied at most once, or not at all where it is small and comes in one
 * piece. `contentLength` is what the caller declared, null where it did not; a longer body than its `maxBytes`, and a large one that
 * has no room beside others, is refused by its declared length before a byte is read, or as soon as it passes the bound.
 * `done` is called once: `body_too_large`, `overloaded`, or `request_aborted` where the caller left before the end.
 * What is still on its way after a refusal is not read here: `refuse` drains it within bounds. A large body is read as `bodyPace` has room.
 */
export function collectBody (
  stream: Readable, contentLength: number | null, owner: BodyOwner, done: Done, { bodyPace, bodyMemory }: SharedBounds
): void {
  const refusal = refusalAtOnce(stream, contentLength, owner, bodyMemory)
  if (refusal !== null) {
    done(refusal, null)
    return
  }
  let body = nothing
  let length = 0
  // Instead of taking the listeners off again at each end, which costs as much as all the reading of a small body.
  let isOver = false

  function onData (chunk: Buffer | string): void {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    const needed = length + bytes.length
    // A small first piece is kept as it came.
    const isWhole = length === 0 && needed <= largeBytes
    const room = takeRoom(owner, needed, isWhole ? needed : body.length, contentLength, bodyMemory)
    if (typeof room !== 'number') {
      isOver = true
      body = nothing
      bodyMemory?.leave(owner)
      stream.off('data', onData)
      done(room, null)
      return
    }
    if (isWhole) body = bytes
    else {
      if (room > 0) body = grown(body, length, room)
      bytes.copy(body, length)
    }
    length = needed
    if (length > largeBytes) slowDown(stream, bytes.length, bodyPace)
  }

  function onEnd (): void {
    // A client of Node's ends a stream right before it resets it: both mostly come in one turn, and the reset is told after the end.
    if (stream instanceof Http2ServerRequest) setImmediate(finish)
    else finish()
  }

  function finish (): void {
    if (isOver) return
    isOver = true
    if (owner.body.heldBytes > 0) bodyMemory?.keep(owner, length)
    done(null, length === body.length ? body : body.subarray(0, length))
  }

  function onBreak (): void {
    if (isOver) return
    isOver = true
    done(gatewayError('request_aborted'), null)
  }

  stream.on('data', onData)
  stream.on('end', onEnd)
  stream.on('close', onBreak)
  // Stays for good: a stream may fail after it was refused, and an error that nobody hears ends the process. A request of
  // Node's own tells its errors only where somebody listens.
  if (!(stream instanceof IncomingMessage)) stream.on('error', ignore)
}

/** Why nothing is read: the declared length is too much, or the caller has left. */
function refusalAtOnce (
  stream: Readable, contentLength: number | null, owner: BodyOwner, bodyMemory: BodyMemory | null
): GatewayError | null {
  const { maxBytes } = owner.body
  const length = contentLength ?? 0
  if (length > maxBytes) return tooLarge(maxBytes)
  const refusal = length > largeBytes ? bodyMemory?.refusal(owner, length) ?? null : null
  return refusal === null && stream.destroyed ? gatewayError('request_aborted') : refusal
}

function slowDown (stream: Readable, bytes: number, bodyPace: Pace | null): void {
  if (bodyPace?.isFull === true) {
    stream.pause()
    bodyPace.onRoom(() => stream.resume())
  } else {
    restWhenShareIsTaken(stream, bytes)
  }
}

/** A stream that fails closes, too. */
function ignore (): void {}

/** A declared body length; null for none. Node has checked its digits. */
export function declaredLength (header: string | undefined): number | null {
  return header === undefined ? null : Number(header)
}

/** Bytes to reserve in place of what `reserved` has, 0 where that is enough; a refusal where the body goes no further. */
function takeRoom (
  owner: BodyOwner, needed: number, reserved: number, contentLength: number | null, bodyMemory: BodyMemory | null
): number | GatewayError {
  const { maxBytes } = owner.body
  if (needed > maxBytes) return tooLarge(maxBytes)
  if (needed <= reserved) return 0
  const wanted = Math.min(roomFor(needed, contentLength), maxBytes)
  return wanted > largeBytes ? bodyMemory?.take(owner, needed, wanted) ?? wanted : wanted
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
