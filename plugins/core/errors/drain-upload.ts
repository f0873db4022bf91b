/** The upload of a caller that is refused before all of it came: a connection that is closed under it is reset, and the reply with it. */
import type { IncomingMessage } from 'node:http'
import { constants } from 'node:http2'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { closeStream } from '../reply/cut-reply.js'
import { restWhenShareIsTaken } from '../body/loop-share.js'

/** A body that declares itself no longer than this is left to Node, which reads what remains of it when the reply is out. */
const smallBytes = 64 * 1024
/** Beyond the default cap of a body, so that one above it comes to its end. */
const drainMaxBytes = 64 * 1024 * 1024
const drainMaxMs = 5_000

/** Reads what is still on its way, and cuts it beyond the bounds. Resolves at its end; null where nothing of length can be coming. */
export function drainUpload (raw: IncomingMessage): Promise<void> | null {
  if (raw.complete || raw.readableEnded || raw.destroyed || !mayBeLong(raw)) return null
  return new Promise((resolve) => {
    let bytes = 0
    const timer = setTimeout(() => cut(raw), drainMaxMs)
    timer.unref()
    raw.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > drainMaxBytes) cut(raw)
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

/** The whole reply at once, and its end, with which Node closes the connection, once the upload is over (RFC 9112 9.6). */
export function sendAndLinger (reply: FastifyReply, text: string, drained: Promise<void>): FastifyReply {
  async function * parts (): AsyncGenerator<string> {
    yield text
    await drained
  }
  return reply.header('content-length', Buffer.byteLength(text)).send(Readable.from(parts()))
}

/** Over HTTP/2 a request that is destroyed leaves its stream open, and its caller to write into a window that is full. */
function cut (raw: IncomingMessage): void {
  if (!closeStream(raw, constants.NGHTTP2_NO_ERROR)) raw.destroy()
}

function mayBeLong ({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > smallBytes
}
