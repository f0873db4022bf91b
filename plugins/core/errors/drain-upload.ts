/** Reads on an upload that was refused early: if the connection were closed under it, it would be reset, and the reply lost. */
import type { IncomingMessage } from 'node:http'
import { constants } from 'node:http2'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import { closeStream } from '../reply/cut-reply.js'
import { restWhenShareIsTaken } from '../body/loop-share.js'

/** A body with no longer declared length is left to Node, which reads the rest of it after the reply. */
const smallBytes = 16 * 1024
/** More than the default cap of a body, so that a body somewhat above the cap is read to its end. */
const drainMaxBytes = 64 * 1024 * 1024
const drainMaxMs = 5_000
/** Who takes less in that time takes nothing: a list of models may be long. */
const slowBytes = 16 * 1024
/** A body that is sent without a pause has come by then, as Go's client also assumes, and need not cost its connection. */
const soonMs = 50
/** Chunks take as long to read whatever they hold, and one read of a socket has ten thousand of a byte each: no client sends so many. */
const fewPieces = 4_096
const leastBytesOfPiece = 64

/** Reads the rest of an upload, and cuts it beyond the bounds. Resolves at its end; null if nothing long can be coming. */
export function drainUpload (raw: IncomingMessage): Promise<void> | null {
  if (raw.complete || raw.readableEnded || raw.destroyed || !mayBeLong(raw)) return null
  return new Promise((resolve) => {
    let bytes = 0
    let pieces = 0
    const timer = setTimeout(() => cut(raw), drainMaxMs)
    timer.unref()
    raw.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      pieces += 1
      if (bytes > drainMaxBytes || (pieces > fewPieces && bytes < pieces * leastBytesOfPiece)) cut(raw)
      else restWhenShareIsTaken(raw, chunk.length)
    })
    const end = (): void => {
      clearTimeout(timer)
      resolve()
    }
    raw.once('close', end)
    raw.once('end', end)
  })
}

/**
 * Sends the reply as soon as the upload is over. One that takes longer has its reply before, and its connection ends with it (RFC 9112
 * 9.6): a proxy whose caller gave the upload up might send another caller's request in place of the rest, as HAProxy does.
 */
export function sendAndLinger (reply: FastifyReply, text: string, drained: Promise<void>): FastifyReply {
  const { raw, request } = reply
  async function * parts (): AsyncGenerator<Buffer> {
    await Promise.race([drained, pause(soonMs, undefined, { ref: false })])
    if (!request.raw.complete && !raw.headersSent) raw.setHeader('connection', 'close')
    yield Buffer.from(text)
    await drained
  }
  return reply.header('content-length', Buffer.byteLength(text)).send(Readable.from(parts()))
}

/**
 * Over HTTP/2 a caller may give a reply no room, however short it is, and would have it held as long as its connection. The timeout of a
 * stream is no use: whatever is sent on the connection, as the answer to a ping, begins it anew.
 */
export function cutUntaken ({ raw, request }: FastifyReply): void {
  // One whose caller has left is closed already, and would never end the interval.
  if (request.raw.httpVersionMajor < 2 || Object(Reflect.get(raw, 'stream')).destroyed === true) return
  let periods = 0
  const timer = setInterval(() => {
    // A hook of the host's may hold it back.
    if (!raw.headersSent) return
    periods += 1
    const { 'content-length': length = 0 } = raw.getHeaders()
    if (periods > 1 + Number(length) / slowBytes) closeStream(raw, constants.NGHTTP2_CANCEL)
  }, drainMaxMs).unref()
  raw.once('close', () => clearInterval(timer))
}

/**
 * Over HTTP/2 destroying a request would leave its stream open, and its caller writing into a full window. Closed without an error, the
 * stream waits for its reply to be taken, and can be closed in no other way then.
 */
function cut (raw: IncomingMessage): void {
  const { headersSent, writableFinished } = Object(Reflect.get(raw, 'stream'))
  const isUntaken = headersSent === true && writableFinished === false
  if (!closeStream(raw, isUntaken ? constants.NGHTTP2_CANCEL : constants.NGHTTP2_NO_ERROR)) raw.destroy()
}

/** Over HTTP/2 no header tells of a body without a length. */
function mayBeLong ({ headers, httpVersionMajor }: IncomingMessage): boolean {
  const { 'content-length': length = httpVersionMajor > 1 ? Infinity : 0 } = headers
  return headers['transfer-encoding'] !== undefined || Number(length) > smallBytes
}
