import { IncomingMessage } from 'node:http'
import { Http2ServerRequest } from 'node:http2'
import type { Readable } from 'node:stream'
import type { BodyHolder, BodyMemory } from './body-memory.js'
import { gatewayError, type GatewayError } from '../errors/gateway-error.js'
import { restWhenShareIsTaken } from './loop-share.js'

type Done = (...result: [error: null, body: Buffer] | [error: GatewayError, body: null]) => void

/** Makes readers of large bodies wait while there are too many. */
export interface Pace {
  readonly isFull: boolean
  /** Calls `goOn` once that is over. */
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

/** A longer body is large: it is parsed and checked off the event loop, and its memory is counted. */
export const largeBytes = 256 * 1024

/** How much of a declared length is reserved at once; the rest once this much has really come. */
const eagerBytes = 1024 * 1024

const nothing: Buffer = Buffer.alloc(0)

/**
 * Reads a request's whole body into one buffer. A small body that comes in one piece is not copied. `contentLength`: the declared
 * length, null for none. A body longer than `maxBytes`, or a large one without room beside others, is refused by its declared
 * length before a byte is read, or as soon as it passes the bound.
 * `done` is called once, with the bytes or with `body_too_large`, `overloaded`, or `request_aborted` if the caller left before the end.
 * What still comes after a refusal is not read here: `refuse` drains it within bounds. A large body is read at the pace of `bodyPace`.
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
  // Instead of removing the listeners at each end, which costs as much as reading a small body.
  let isOver = false

  function onData (chunk: Buffer | string): void {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    const needed = length + bytes.length
    // A small first piece is kept as it came.
    const isWhole = length === 0 && needed <= largeBytes
    const room = takeRoom(owner, needed, isWhole ? needed : body.length, contentLength, bodyMemory)
    if (typeof room !== 'number') {
      body = nothing
      bodyMemory?.leave(owner)
      stream.off('data', onData)
      fail(room)
      return
    }
    body = isWhole ? bytes : appended(body, length, bytes, room)
    length = needed
    if (length > largeBytes) slowDown(stream, bytes.length, bodyPace)
  }

  function onEnd (): void {
    if (isOver) return
    isOver = true
    if (owner.body.heldBytes > 0) bodyMemory?.keep(owner, length)
    done(null, length === body.length ? body : body.subarray(0, length))
  }

  function fail (error: GatewayError): void {
    isOver = true
    done(error, null)
  }

  listen(stream, onData, onEnd, () => { if (!isOver) fail(gatewayError('request_aborted')) })
}

function listen (stream: Readable, onData: (chunk: Buffer | string) => void, onEnd: () => void, onClose: () => void): void {
  stream.on('data', onData)
  // A client of Node's ends a stream right before it resets it: both mostly come in one turn, the reset after the end.
  stream.on('end', stream instanceof Http2ServerRequest ? () => setImmediate(onEnd) : onEnd)
  stream.on('close', onClose)
  // Never removed: a stream may fail after it was refused, and an unhandled error ends the process. Node's own requests
  // emit errors only if somebody listens.
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

/** Generous, because reserved memory that is not written to costs nothing, while copying again takes time in one turn. */
function roomFor (needed: number, contentLength: number | null): number {
  if (contentLength === null || contentLength < needed) return needed * (needed > eagerBytes ? 8 : 2)
  return needed > eagerBytes ? contentLength : Math.min(contentLength, eagerBytes)
}

/** `bytes` behind the first `length` ones of `body`, which moves to `room` new bytes if that is not 0. */
function appended (body: Buffer, length: number, bytes: Buffer, room: number): Buffer {
  const target = room > 0 ? Buffer.allocUnsafe(room) : body
  if (target !== body) body.copy(target, 0, 0, length)
  bytes.copy(target, length)
  return target
}

function tooLarge (maxBodyBytes: number): GatewayError {
  return gatewayError('body_too_large', { maxBodyBytes })
}
