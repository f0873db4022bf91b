/** Reads the rest of an upload that was refused early: closing the connection under it would reset it, and the reply would be lost. */
import type { IncomingMessage } from 'node:http'
import { constants } from 'node:http2'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import { closeStream } from '../reply/cut-reply.js'
import { restWhenShareIsTaken } from '../body/loop-share.js'

/** A body of at most this declared length is left to Node, which reads the rest of it after the reply. */
const smallBytes = 16 * 1024
/** More than the default cap of a body, so that a body somewhat above the cap is read to its end. */
const drainMaxBytes = 64 * 1024 * 1024
const drainMaxMs = 5_000
/** A caller must take at least this much of a long reply, such as a list of models, in each `drainMaxMs`. */
const leastTakenBytes = 16 * 1024
/** A body that is sent without a pause has arrived by then, as Go's client also assumes, and its connection can be kept. */
const soonMs = 50
/**
 * Reading a piece takes as long whatever it holds, and one read of a socket may bring ten thousand pieces of one byte. An upload of more
 * pieces than this, of fewer bytes each, is cut: no client sends so many.
 */
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
    const { socket } = raw
    const end = (): void => {
      clearTimeout(timer)
      socket.removeListener('end', endOfCaller)
      resolve()
    }
    // A caller that has its reply and closes its side sends nothing more. Node does not end its request for that.
    const endOfCaller = (): void => { if (!socket.writableEnded) end() }
    if (raw.httpVersionMajor < 2) socket.on('end', endOfCaller)
    raw.once('close', end)
    raw.once('end', end)
  })
}

/**
 * Sends the reply when the upload is over, or at the latest after `soonMs`. In the latter case the connection is closed once the upload has
 * been drained (RFC 9112 9.6): a proxy whose caller gave up its upload might send another caller's request in place of the rest, as
 * HAProxy does.
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
 * Cuts a reply that is not taken. Over HTTP/2 a caller may open no window for a reply, however short, which would then be held as long as
 * the connection lasts. A stream's own timeout does not help: anything sent on the connection, such as the answer to a ping, restarts it.
 */
export function cutUntaken ({ raw, request }: FastifyReply): void {
  // If the caller has left, the stream is closed already, and no `close` would end the interval.
  if (request.raw.httpVersionMajor < 2 || Object(Reflect.get(raw, 'stream')).destroyed === true) return
  let periods = 0
  const timer = setInterval(() => {
    // One of the host's hooks may be holding the reply back.
    if (!raw.headersSent) return
    periods += 1
    const { 'content-length': length = 0 } = raw.getHeaders()
    if (periods > 1 + Number(length) / leastTakenBytes) closeStream(raw, constants.NGHTTP2_CANCEL)
  }, drainMaxMs).unref()
  raw.once('close', () => clearInterval(timer))
}

/**
 * Over HTTP/2 destroying a request would leave its stream open, and its caller writing into a full window, so its stream is closed. One
 * that is closed without an error waits until its reply is taken, and then cannot be closed in any other way.
 */
function cut (raw: IncomingMessage): void {
  const { headersSent, writableFinished } = Object(Reflect.get(raw, 'stream'))
  const isUntaken = headersSent === true && writableFinished === false
  if (!closeStream(raw, isUntaken ? constants.NGHTTP2_CANCEL : constants.NGHTTP2_NO_ERROR)) raw.destroy()
}

/** Over HTTP/2 no header announces a body without a declared length. */
function mayBeLong ({ headers, httpVersionMajor }: IncomingMessage): boolean {
  const { 'content-length': length = httpVersionMajor > 1 ? Infinity : 0 } = headers
  return headers['transfer-encoding'] !== undefined || Number(length) > smallBytes
}
