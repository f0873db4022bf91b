import type { IncomingMessage } from 'node:http'
import { constants } from 'node:http2'
import { TLSSocket } from 'node:tls'
import type { FastifyReply } from 'fastify'

/**
 * Called before the body of a reply is destroyed, so that its caller sees that it is incomplete. Over HTTP/1 the framework then closes the
 * connection before the last chunk. Over HTTP/2 it destroys the stream, which ends it like a complete one (RFC 9113 8.1): here it is reset
 * with an error first. A reply that has not begun is left to the framework, which may report the failure.
 */
export function cutReply (reply: FastifyReply): void {
  const { raw } = reply
  if (!raw.headersSent) cutLater(reply)
  // A host's hook that replaced the stream may never end it.
  else if (!resetReply(reply)) setImmediate(() => raw.destroy())
}

/** A hook that held the body back may yet pass on what it has, with the failure behind it: then the framework destroys the reply. */
function cutLater (reply: FastifyReply): void {
  const { raw } = reply
  const destroy = raw.destroy.bind(raw)
  Object.assign(raw, {
    destroy (error?: Error) {
      resetReply(reply)
      return destroy(error)
    },
  })
}

/** Ends the stream of HTTP/2, or resets the connection of HTTP/1.0. False where nothing of the kind is needed, or possible. */
function resetReply ({ raw, request }: FastifyReply): boolean {
  if (closeStream(raw, constants.NGHTTP2_INTERNAL_ERROR)) return true
  resetOld(request.raw)
  return false
}

/** Ends the stream of a request or a reply over HTTP/2. False over HTTP/1; both have its types, whatever the host's server is. */
export function closeStream (raw: object, code: number): boolean {
  const stream: unknown = Reflect.get(raw, 'stream')
  const { close } = Object(stream)
  if (typeof close !== 'function') return false
  Reflect.apply(close, stream, [code])
  return true
}

/**
 * Resets the connection of a request in HTTP/1.0 at once. There a complete reply may end with its connection, so that only a reset is
 * recognised as a failure: nginx, which uses it by default, would end its own reply cleanly.
 */
export function resetOld ({ httpVersion, socket }: IncomingMessage): void {
  if (httpVersion === '1.0' && !(socket instanceof TLSSocket)) socket.resetAndDestroy()
}
