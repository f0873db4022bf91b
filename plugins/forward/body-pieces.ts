/** Large bodies in pieces: the kernel takes the write of a whole one for as long as the other side reads, and nobody else is served. */
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'

const wholeBytes = 1024 * 1024
const pieceBytes = 256 * 1024

/** The same request; a body of more than 1 MB as a stream with its length, which reads one piece in a turn of the loop. */
export function inPieces (options: Dispatcher.DispatchOptions): Dispatcher.DispatchOptions {
  const { body, headers = null } = options
  if (body instanceof Readable) return Object.assign({}, options, { body: readApart(body) })
  if (!Buffer.isBuffer(body) || body.length <= wholeBytes) return options
  return Object.assign({}, options, { body: piecesOf(body), headers: withLength(headers, String(body.length)) })
}

/**
 * A body that comes from its caller. What the transport has not read to its end it destroys, where an upstream answers before: Node would
 * tell that its caller had left, and the answer would not be sent.
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

/** Of a stream nobody else knows it. */
function withLength (headers: Dispatcher.DispatchOptions['headers'], length: string): Dispatcher.DispatchOptions['headers'] {
  if (Array.isArray(headers)) return [...headers, 'content-length', length]
  const own: IncomingHttpHeaders = { 'content-length': length }
  for (const [name, value] of Object.entries<string | string[] | undefined>(Object(headers))) {
    if (name.toLowerCase() !== 'content-length') own[name] = value
  }
  return own
}
