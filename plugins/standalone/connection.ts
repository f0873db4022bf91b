/** What a connection still owes its caller: unsent replies, in the order of their requests. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

export interface Connection {
  /** Replies that are not finished, the oldest first: only that one may be written. */
  readonly open: ServerResponse[]
  /** A request whose reply was sent before all of it had arrived. */
  unread: IncomingMessage | null
  /** It is being closed: what still arrives on it is ignored. */
  closing: boolean
}

const connections = new WeakMap<Duplex, Connection>()

export function connectionOf (socket: Duplex): Connection {
  const known = connections.get(socket)
  if (known !== undefined) return known
  const connection = { open: [], unread: null, closing: false }
  connections.set(socket, connection)
  return connection
}

/** False if the connection is being closed, so that the request must be ignored. */
export function accept (request: IncomingMessage, response: ServerResponse): boolean {
  const connection = connectionOf(request.socket)
  if (connection.closing) return false
  connection.open.push(response)
  response.on('close', forget)
  return true
}

// Not a closure: one for each request would outlive the next scavenge.
function forget (this: ServerResponse): void {
  const connection = connectionOf(this.req.socket)
  connection.open.splice(connection.open.indexOf(this), 1)
  connection.unread = this.req.complete ? null : this.req
}
