import type { IncomingMessage } from 'node:http'
import { constants } from 'node:http2'
import { TLSSocket } from 'node:tls'
import type { FastifyReply } from 'fastify'

/**
 * Called before the body of a reply is destroyed, so that its caller sees that what it has is not whole. Over HTTP/1 the framework
 * then closes the connection before the last chunk. Over HTTP/2 it destroys the stream, which ends it as a whole one (RFC 9113
 * 8.1): here it is reset with an error first. A reply that has not begun is the framework's to fail.
 */
export function cutReply ({ raw, request }: FastifyReply): void {
  if (!raw.headersSent) return
  if (closeStream(raw, constants.NGHTTP2_INTERNAL_ERROR)) return
  resetOld(request.raw)
  // A hook of the host's that put a stream of its own in place may never end it.
  setImmediate(() => raw.destroy())
}

/** Ends the stream of a request or a reply over HTTP/2. False over HTTP/1, as which both are typed, whatever the host's server is. */
export function closeStream (raw: object, code: number): boolean {
  const stream: unknown = Reflect.get(raw, 'stream')
  const close: unknown = typeof stream === 'object' && stream !== null ? Reflect.get(stream, 'close') : null
  if (typeof close !== 'function') return false
  Reflect.apply(close, stream, [code])
  return true
}

/**
 * Resets the connection of a request in HTTP/1.0, at once. A whole reply may end with its connection there, so that only a reset tells:
 * nginx, which speaks it unless told otherwise, would end its own reply cleanly.
 */
export function resetOld ({ httpVersion, socket }: IncomingMessage): void {
  if (httpVersion === '1.0' && !(socket instanceof TLSSocket)) socket.resetAndDestroy()
}
