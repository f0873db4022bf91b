import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { gatewayOptions, secret } from '../helpers/gateway.js'

t.test('the name in the options of TLS is the one that the upstream is asked for', async (t) => {
  const hellos: string[] = []
  // A greeting has the name in plain text, and needs no answer.
  const server = createServer((socket) => socket.once('data', (bytes) => {
    hellos.push(bytes.toString('latin1'))
    socket.destroy()
  })).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const upstream = `https://localhost:${(server.address() as AddressInfo).port}`
  const tls = { servername: 'inner.example' }
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, { ...gatewayOptions(upstream), forward: { tls } })
  await app.register(httpProxy, { ...proxyOptions({ tls, unknown: 'forward' }), upstream, prefix: '/v1', rewritePrefix: '/v1' })
  for (const url of ['/v1/models', '/v1/files']) {
    const reply = await app.inject({ url, headers: { authorization: `Bearer ${secret}` } })
    t.match([reply.statusCode >= 500, hellos.at(-1)], [true, /inner\.example/], url)
  }
  t.notMatch(hellos.join(), /localhost/)
})
