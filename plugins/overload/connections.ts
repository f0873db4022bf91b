import type { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** Connections beyond the maximum that are still answered; the same number of TLS handshakes may be in progress besides. */
const spare = 64
/** Time to send a request, and to receive the answer. */
const patienceMs = 5_000

/** Connections above the maximum, each with the timer that closes it if it sends no request. */
const excess = new WeakMap<object, NodeJS.Timeout>()

/**
 * A connection above the maximum is accepted to be refused with an answer: it counts as shed, its model requests are answered with 503, and
 * then it is closed. Too many of them are closed at once, and so is each that has no socket of its own in Node (HTTP/2). The server's own
 * `maxConnections` is not used: with it the workers of a cluster pass a connection round and round. Returns a function that adds the
 * connections of another server to the count.
 */
export function limitConnections (first: EventEmitter, maxConnections: number, shed: () => void): (further: EventEmitter) => void {
  const more = Math.max(spare, maxConnections / 10)
  const most = maxConnections + ('updateSettings' in first ? 0 : more)
  let open = 0
  let begun = 0
  const counted = new WeakSet<object>()
  const came = (socket: Socket): void => {
    // A request that offered another protocol is read again, on a connection that the server is told of once more.
    if (counted.has(socket)) return
    counted.add(socket)
    open += 1
    socket.once('close', () => { open -= 1 })
    if (open <= maxConnections) return
    shed()
    if (open > most) socket.destroy()
    else excess.set(socket, setTimeout(() => socket.destroy(), patienceMs).unref())
  }
  /** TLS reports a connection after its handshake, which a caller may never finish. */
  const began = (socket: Socket): void => {
    begun += 1
    socket.once('close', () => { begun -= 1 })
    if (begun <= most + more) return
    shed()
    socket.destroy()
  }
  const watch = (server: EventEmitter): void => {
    if ('setSecureContext' in server) server.on('connection', began).on('secureConnection', came)
    else server.on('connection', came)
  }
  watch(first)
  return watch
}

/** True if the request came on a connection above the maximum. */
export function isExcess ({ socket }: IncomingMessage): boolean {
  const timer = excess.get(socket)
  clearTimeout(timer)
  return timer !== undefined
}
