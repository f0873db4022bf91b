import type { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { onFurtherServers } from './further-servers.js'

/**
 * Over HTTP/2 Node answers `Expect: 100-continue` before anybody is asked, and throws if the caller has reset its request by then. Over TLS
 * a caller can bring that about, and so end the process. With a listener, that answers instead.
 */
export function continueOverHttp2 (app: FastifyInstance): void {
  if (!('updateSettings' in app.server)) return
  listen(app.server)
  onFurtherServers(app, listen)
}

/** One for all gateways, before any of the host's: one that is there once is gone after its turn, and would not be seen. */
function listen (server: EventEmitter): void {
  const isThere = server.listeners('checkContinue').some(({ name }) => name === llmGatewayContinue.name)
  if (!isThere) server.prependListener('checkContinue', llmGatewayContinue)
}

function llmGatewayContinue (this: EventEmitter, request: unknown, response: ServerResponse): void {
  // A listener of the host's answers by itself.
  if (this.listenerCount('checkContinue') > 1) return
  const { closed } = Object(Reflect.get(response, 'stream'))
  if (closed !== true) response.writeContinue()
  this.emit('request', request, response)
}
