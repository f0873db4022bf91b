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
import { startUpstream, type Signal, type Upstream } from './helpers/upstream.js'

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })

/** Frames of RFC 9113, so that a test decides what comes together: two writes of a client need not. */
function frame (type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

const ends = 1
const headersEnd = 4
const data = (flags: number, text: string): Buffer => frame(0, flags, 1, Buffer.from(text))
const reset = (code: number): Buffer => frame(3, 0, 1, Buffer.from([0, 0, 0, code]))

/** Names and values as they are, without the tables of RFC 7541. */
function request (headers: Readonly<Record<string, string>>): Buffer {
  const fields = Object.entries(headers).flatMap(([name, value]) => [
    Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value),
  ])
  return Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, Buffer.alloc(0)), frame(
    1, headersEnd, 1, Buffer.concat(fields)
  )])
}

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
