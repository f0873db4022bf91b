/** Requests that offer HTTP/2 on the way, as some HTTP libraries do, are read anew on their connection: it stays one. */
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../../plugins/index.js'
import { gatewayOptions, listen, read, secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const headers = {
  authorization: `Bearer ${secret}`,
  'content-type': 'application/json',
  connection: 'Upgrade, HTTP2-Settings',
  upgrade: 'h2c',
  'http2-settings': 'AAMAAABkAARAAAAAAAIAAAAA',
}

t.test('a connection whose requests offer an upgrade is counted once', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify({ forceCloseConnections: true })
  t.teardown(async () => await app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url, { overload: { maxConnections: 2, maxLoopDelayMs: 0 } }))
  // Node takes an offer for an upgrade only where somebody listens for one.
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/ws', websocket: true })
  const sockets = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => sockets.add(socket))
  const url = await listen(app)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const ask = async (): Promise<unknown[]> => {
    const request = httpRequest(`${url}/v1/chat/completions`, { agent, method: 'POST', headers }).end(body)
    const [reply]: IncomingMessage[] = await once(request, 'response')
    if (reply === undefined) throw new Error('no reply')
    await read(reply)
    return [reply.statusCode, reply.headers.connection]
  }
  const listeners = (): number[] => [...sockets].map((socket) => socket.listenerCount('close'))
  t.same(await ask(), [200, 'keep-alive'])
  const first = listeners()
  for (let i = 0; i < 12; i++) t.same(await ask(), [200, 'keep-alive'])
  t.equal(sockets.size, 1)
  t.same(listeners(), first)
})
