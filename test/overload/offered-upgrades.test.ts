/** Requests that offer HTTP/2 on the way, as some HTTP libraries do, are read anew on their connection: it stays one. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as TlsAgent, request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
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

function certificate (t: Test): { key: Buffer, cert: Buffer } {
  const folder = t.testdir({})
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '1', '-subj', '/CN=localhost',
  ], { stdio: 'ignore' })
  return { key: readFileSync(key), cert: readFileSync(cert) }
}

const servers = {
  'plain HTTP': { event: 'connection', serverOf: () => Fastify({ forceCloseConnections: true }), request: httpRequest, Agent },
  TLS: {
    event: 'secureConnection',
    serverOf: (t: Test): FastifyInstance => Object(Fastify({ forceCloseConnections: true, https: certificate(t) })),
    request: httpsRequest,
    Agent: TlsAgent,
  },
}

for (const [name, { event, serverOf, request, Agent }] of Object.entries(servers)) {
  t.test(`over ${name} a connection whose requests offer an upgrade is counted once`, async (t) => {
    const upstream = await startUpstream(t)
    const app = serverOf(t)
    t.teardown(async () => await app.close())
    await app.register(llmGateway, gatewayOptions(upstream.url, { overload: { maxConnections: 2, maxLoopDelayMs: 0 } }))
    // Node takes an offer for an upgrade only where somebody listens for one.
    await app.register(httpProxy, { upstream: upstream.url, prefix: '/ws', websocket: true })
    const sockets = new Set<Socket>()
    app.server.on(event, (socket: Socket) => sockets.add(socket))
    const url = await listen(app)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    const ask = async (): Promise<unknown[]> => {
      const options = { agent, method: 'POST', headers, rejectUnauthorized: false }
      const [reply]: IncomingMessage[] = await once(request(`${url}/v1/chat/completions`, options).end(body), 'response')
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
}
