/** A host that speaks HTTP/2: an upload that its caller cuts is no whole one. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions } from '../plugins/index.js'
import type { ModelCall } from '../plugins/core/call/model-call.js'
import { gatewayOptions, secret, watchSettled } from './helpers/gateway.js'
import { data, ends, request, reset } from './helpers/http2-frames.js'
import { startUpstream, type Signal, type Upstream } from './helpers/upstream.js'

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })

const head = request({
  ':method': 'POST',
  ':scheme': 'http',
  ':path': '/v1/chat/completions',
  ':authority': 'gateway.test',
  authorization: `Bearer ${secret}`,
  'content-type': 'application/json',
})

async function start (t: Test, upstream: Upstream, routes: boolean): Promise<{ port: number, settled: Signal<ModelCall> }> {
  const app: FastifyInstance = Object(Fastify({ http2: true }))
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url, { routes }))
  if (!routes) await app.register(httpProxy, { ...proxyOptions(), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  const settled = watchSettled(app)
  return { port: Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port), settled }
}

async function open (t: Test, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {}).resume()
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

const cancel = 8
const cuts: Readonly<Record<string, readonly [first: Buffer, rest: Buffer]>> = {
  'reset within it': [data(0, body.slice(0, 20)), reset(cancel)],
  'ended and reset, as by a client of Node\'s': [data(0, body.slice(0, 20)), Buffer.concat([data(ends, ''), reset(cancel)])],
  'ended and reset without an error, whole by its bytes': [data(0, body), Buffer.concat([data(ends, ''), reset(0)])],
}

for (const routes of [true, false]) {
  t.test(`on ${routes ? 'own routes' : 'a mount'}`, async (t) => {
    const upstream = await startUpstream(t)
    const { port, settled } = await start(t, upstream, routes)
    for (const [how, [first, rest]] of Object.entries(cuts)) {
      const socket = await open(t, port)
      socket.write(Buffer.concat([head, first]))
      await pause(200)
      socket.write(rest)
      t.match(await settled.next(), { outcome: 'client_abort', errorCode: 'request_aborted', times: { sentAt: 0 } }, how)
    }
    t.equal(upstream.seen.length, 0)
    const socket = await open(t, port)
    socket.write(Buffer.concat([head, data(ends, body)]))
    t.match(await settled.next(), { outcome: 'ok', status: 200 }, 'a whole one')
  })
}
