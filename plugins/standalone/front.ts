/** The listening server. It belongs to no app, so that a reload never closes the port. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { limitConnections } from '../overload/index.js'
import type { ListenAddress } from './config-values.js'
import { answerClientError } from './client-error.js'
import { accept, connectionOf } from './connection.js'
import { continueLate } from './late-continue.js'

export type Handler = (request: IncomingMessage, response: ServerResponse) => void

export class Front {
  readonly #server: Server

  /** `requestTimeoutMs`: a request that takes longer to arrive, headers and body together, is cut off. */
  constructor (handler: Handler, requestTimeoutMs: number) {
    this.#server = createServer({
      requestTimeout: requestTimeoutMs,
      headersTimeout: Math.min(requestTimeoutMs, 15_000),
      // Longer than the idle time of common load balancers, so that they never reuse a connection that is being closed.
      keepAliveTimeout: 72_000,
      // Refused by the app, with a message.
      requireHostHeader: false,
      connectionsCheckingInterval: Math.min(requestTimeoutMs, 5_000),
    }, (request, response) => {
      if (accept(request, response)) handler(request, response)
    })
    this.#server.on('clientError', answerClientError)
    // Without a listener Node answers `100 Continue` before the app is asked.
    this.#server.on('checkContinue', (request, response) => {
      continueLate(request, response)
      this.#server.emit('request', request, response)
    })
    // Without a listener Node answers 417 itself, and neither app nor log sees it. Expectations may be ignored (RFC 9110 10.1.1).
    this.#server.on('checkExpectation', (request, response) => this.#server.emit('request', request, response))
    // A connection that waits for a slow upstream is left alone.
    this.#server.on('timeout', (socket) => {
      if (socket.writableLength > 0 || connectionOf(socket).open.length === 0) socket.destroy()
    })
  }

  /**
   * How long a caller may read nothing of what is sent to it; 0 for ever. A reply that nobody reads would keep itself and all pipelined
   * requests behind it, a thousand in one read, as long as its connection.
   */
  cutAfter (ms: number): void {
    this.#server.timeout = ms
  }

  /** The app refuses requests on connections above that number. */
  limit (maxConnections: number, dropped: () => void): void {
    limitConnections(this.#server, maxConnections, dropped)
  }

  /** Resolves with the bound address; rejects with Node's error, such as EADDRINUSE. */
  async listen (address: ListenAddress): Promise<ListenAddress> {
    this.#server.listen(address)
    await once(this.#server, 'listening')
    return boundAddress(this.#server)
  }

  /** Closes the port and every connection at once. */
  async close (): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }
}

/** The address of a server that listens on TCP. */
export function boundAddress (server: Server): ListenAddress {
  const { address: host, port } = Object(server.address())
  return { host, port }
}
