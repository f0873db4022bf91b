import type { IncomingMessage, ServerResponse } from 'node:http'

const queued = new WeakMap<object, Set<ServerResponse>>()

/**
 * Ends a reply with its connection if it still waits for its turn there: a caller may send a request before it has the reply to the one
 * before (RFC 9112 9.3.2), and Node tells only the current reply that the connection is gone. The others would wait for ever, with
 * everything that they hold.
 */
export function endWithConnection ({ socket }: IncomingMessage, reply: ServerResponse): void {
  if (reply.socket !== null) return
  if (socket.destroyed) {
    reply.destroy()
    return
  }
  const replies = queued.get(socket) ?? new Set()
  replies.add(reply)
  reply.once('close', () => replies.delete(reply))
  if (queued.has(socket)) return
  // One listener for all of them: a connection may have hundreds.
  queued.set(socket, replies)
  socket.once('close', () => replies.forEach(end))
}

/** As Node ends the current one. */
function end (reply: ServerResponse): void {
  if (reply.socket !== null) return
  reply.destroy()
  reply.emit('close')
}
