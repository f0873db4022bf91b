/** Sends large bodies in pieces: one write of a whole body can occupy the process for as long as the other side reads. */
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'

const wholeBytes = 1024 * 1024
const pieceBytes = 256 * 1024

/** The same request; a body of more than 1 MB as a stream with its length, which reads one piece in a turn of the loop. */
export function inPieces (options: Dispatcher.DispatchOptions): Dispatcher.DispatchOptions {
  const { body, headers = null } = options
  if (body instanceof Readable) return { ...options, body: readApart(body) }
  if (!Buffer.isBuffer(body) || body.length <= wholeBytes) return options
  return { ...options, body: piecesOf(body), headers: withLength(headers, String(body.length)) }
}

/**
 * A body that streams from its caller. If the upstream answers before its end, the transport destroys the stream; Node would take that for
 * a caller that left, and not send the answer. So it gets a stream of its own.
 */
function readApart (body: Readable): Readable {
  return Readable.from(body.iterator({ destroyOnReturn: false }), { objectMode: false })
}

function piecesOf (body: Buffer): Readable {
  let at = 0
  return new Readable({
    highWaterMark: pieceBytes,
    read () {
      setImmediate(() => {
        const piece = body.subarray(at, at + pieceBytes)
        at += piece.length
        this.push(piece.length === 0 ? null : piece)
      })
    },
  })
}

/** Sets the length, which nobody could tell from a stream. */
function withLength (headers: Dispatcher.DispatchOptions['headers'], length: string): string[] | IncomingHttpHeaders {
  if (Array.isArray(headers)) return [...headers, 'content-length', length]
  const own: IncomingHttpHeaders = { 'content-length': length }
  for (const [name, value] of Object.entries<string | string[] | undefined>(Object(headers))) {
    if (name.toLowerCase() !== 'content-length') own[name] = value
  }
  return own
}
