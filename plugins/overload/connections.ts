import type { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** Beyond the number and this many more nobody is told anything; so many handshakes of TLS may be under way besides. */
const spare = 64
/** Time to ask, and to be told. */
const patienceMs = 5_000

/** Connections above the allowed number, and what closes each where it asks nothing. */
const excess = new WeakMap<object, NodeJS.Timeout>()

/**
 * A connection above that number is there to be refused in words: it counts as shed, its model requests are answered with 503,
 * and it is closed after that. Many more of them are closed at once, and so is each that Node gives no socket of its own (HTTP/2).
 * Not by the server's own `maxConnections`: with it the workers of a cluster pass a connection round and round. Returns what has those of
 * another server count with them.
 */
export function limitConnections (first: EventEmitter, maxConnections: number, shed: () => void): (further: EventEmitter) => void {
  const more = Math.max(spare, maxConnections / 10)
  const most = maxConnections + ('updateSettings' in first ? 0 : more)
  let open = 0
  let begun = 0
  const counted = new WeakSet<object>()
  const came = (socket: Socket): void => {
    // A request that offered another protocol is read anew, on a connection that the server is told of once more.
    if (counted.has(socket)) return
    counted.add(socket)
    open += 1
    socket.once('close', () => { open -= 1 })
    if (open <= maxConnections) return
    shed()
    if (open > most) socket.destroy()
    else excess.set(socket, setTimeout(() => socket.destroy(), patienceMs).unref())
  }
  /** TLS tells of a connection after its handshake, which a caller may never end. */
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

/** True where the request came on a connection above the allowed number. */
export function isExcess ({ socket }: IncomingMessage): boolean {
  const timer = excess.get(socket)
  clearTimeout(timer)
  return timer !== undefined
}
