/** A host that speaks HTTP/2 over TLS: Node answers `Expect: 100-continue` before anybody is asked, as its documentation says. */
import { once } from 'node:events'
import { request as httpsRequest } from 'node:https'
import { connect as connectClient, type Http2SecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { connect } from 'node:tls'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway from '../plugins/index.js'
import { certificate, withoutTls } from './helpers/certificate.js'
import { gatewayOptions, secret } from './helpers/gateway.js'
import { data, ends, opening, requestOn, reset } from './helpers/http2-frames.js'
import { Signal, startUpstream } from './helpers/upstream.js'

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
const asked = { 'content-type': 'application/json', expect: '100-continue', authorization: `Bearer ${secret}` }
const head = { ':method': 'POST', ':scheme': 'https', ':authority': 'gateway.test', ':path': '/v1/chat/completions', ...asked }

interface Started {
  readonly port: number
  readonly server: Http2SecureServer
  /** Requests as the host's first hook sees them. */
  readonly begun: Signal<string>
}

/** `prepare`: what the host does with its server before it registers anything. */
async function start (t: Test, prepare: (server: Http2SecureServer) => void = () => {}): Promise<Started> {
  const app: FastifyInstance = Object(Fastify({ http2: true, https: { allowHTTP1: true, ...certificate(t) } }))
  t.teardown(() => app.close())
  const server: Http2SecureServer = Object(app.server)
  prepare(server)
  const upstream = await startUpstream(t)
  const begun = new Signal<string>()
  app.addHook('onRequest', async ({ raw }) => { begun.push(raw.httpVersion) })
  // In scopes side by side there are two gateways on one server.
  for (const options of [{ prefix: '/other', metrics: false as const }, {}]) {
    await app.register(async (scope) => { await scope.register(llmGateway, gatewayOptions(upstream.url, options)) })
  }
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  return { port: Number(port), server, begun }
}

async function askOverHttp2 (port: number): Promise<{ continued: number, status: unknown }> {
  const client = connectClient(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  const stream = client.request(head)
  let continued = 0
  stream.on('continue', () => {
    continued += 1
    stream.end(body)
  })
  const [reply] = await once(stream, 'response')
  stream.resume()
  await once(stream, 'close')
  client.destroy()
  return { continued, status: reply[':status'] }
}

t.test('callers that expect 100 and leave at once end nothing', { skip: withoutTls }, async (t) => {
  const { port, begun } = await start(t)
  const streams = Array.from({ length: 16 }, (_, i) => 2 * i + 1)
  const storm = Buffer.concat(streams.flatMap((stream) => [requestOn(stream, head), data(ends, '{}', stream), reset(8, stream)]))
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] }).on('error', () => {}).resume()
  await once(socket, 'secureConnect')
  // In one read of the server's, but in records of their own.
  socket.setNoDelay(true)
  for (const record of [opening.subarray(0, 24), opening.subarray(24), storm]) socket.write(record)
  await begun.next()
  socket.destroy()

  t.strictSame(await askOverHttp2(port), { continued: 1, status: 200 })

  const plain = httpsRequest({
    port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    method: 'POST',
    path: head[':path'],
    headers: { ...asked, 'content-length': body.length },
  })
  plain.flushHeaders()
  await once(plain, 'continue')
  plain.end(body)
  const [reply] = await once(plain, 'response')
  t.equal(reply.resume().statusCode, 200, 'over HTTP/1')
})

/** As Node's documentation tells hosts to listen. */
function own (this: Http2SecureServer, request: Http2ServerRequest, response: Http2ServerResponse): void {
  response.writeContinue()
  this.emit('request', request, response)
}

t.test('a listener of the host answers by itself, once or always', { skip: withoutTls }, async (t) => {
  for (const listen of ['on', 'once'] as const) {
    const before = await start(t, (server) => server[listen]('checkContinue', own))
    const after = await start(t)
    after.server[listen]('checkContinue', own)
    for (const { port, begun } of [before, after]) {
      for (const times of [1, 2]) {
        t.strictSame(await askOverHttp2(port), { continued: 1, status: 200 })
        t.equal(begun.size, times)
      }
    }
  }
})
