import type { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { furtherServers } from './further-servers.js'

/**
 * Over HTTP/2 Node answers `Expect: 100-continue` before anybody is asked, and throws if the caller has reset its request by then. Over TLS
 * a caller can bring that about, and so end the process. With a listener, that answers instead.
 */
export function continueOverHttp2 (app: FastifyInstance): void {
  if (!('updateSettings' in app.server)) return
  listen(app.server)
  app.addHook('onListen', async () => furtherServers(app).forEach(listen))
}

function listen (server: EventEmitter): void {
  server.on('checkContinue', function llmGatewayContinue (request: unknown, response: ServerResponse) {
    // The first of several gateways answers, and none where the host has a listener of its own.
    const listeners = server.listeners('checkContinue')
    if (listeners[0] !== llmGatewayContinue || listeners.some(({ name }) => name !== llmGatewayContinue.name)) return
    const { closed } = Object(Reflect.get(response, 'stream'))
    if (closed !== true) response.writeContinue()
    server.emit('request', request, response)
  })
}
