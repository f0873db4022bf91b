/** Callers that take their reply slowly, or not at all. */
import { OutgoingMessage } from 'node:http'
import { connect as connectH2 } from 'node:http2'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import { proxyOptions } from '../../plugins/forward/index.js'
import llmGateway from '../../plugins/index.js'
import { call, gatewayOptions, listen, read, secret, startGateway, watchSettled } from '../helpers/gateway.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
// More than the buffers of two loopback connections and of everything between them hold.
const large = `{"filler":"${'x'.repeat(40_000_000)}","usage":{"prompt_tokens":1,"completion_tokens":2}}`
const headers = { 'content-type': 'application/json' }

function queueLarge (upstream: Upstream): void {
  upstream.queue({ headers, body: large })
}

t.test('who takes nothing for as long as an upstream may be silent is cut, and its request settled', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { idleTimeoutMs: 200, drain: { maxMs: 0 } } })
  queueLarge(upstream)
  const { request, reply } = call(`${await listen(app)}/v1/chat/completions`, { body })
  t.equal((await reply).statusCode, 200)
  t.match(await settled.next(), { outcome: 'client_abort', abortedBy: 'client', usage: { missing: 'client_abort' } })
  t.equal(await upstream.seen[0]?.aborted, true, 'the upstream is cancelled')
  request.destroy()
})

t.test('so it is where the whole reply has come already, and on an adapted mount', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(async () => await app.close())
  await app.register(httpProxy, { ...proxyOptions({ idleTimeoutMs: 200 }), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  // Buffers the whole reply: the upstream is done with it long before its caller is.
  app.addHook('onSend', async (_, reply, payload) => {
    const chunks: Buffer[] = []
    for await (const chunk of Object(payload)) chunks.push(chunk)
    reply.removeHeader('content-length')
    return Buffer.concat(chunks)
  })
  const settled = watchSettled(app)
  queueLarge(upstream)
  const { request } = call(`${await listen(app)}/v1/chat/completions`, { body })
  t.match(await settled.next(), { outcome: 'client_abort', usage: { tokens: { input: 1, output: 2 } } }, 'what the reply told is kept')
  request.destroy()
})

t.test('who asks for one small reply after the other and takes none of them is cut too', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { idleTimeoutMs: 200 } })
  const url = new URL(await listen(app))
  for (let i = 0; i < 1_500; i += 1) upstream.queue({ headers, body: `{"filler":"${'x'.repeat(15_000)}"}` })
  const socket = connect(Number(url.port), url.hostname)
  t.teardown(() => socket.destroy())
  socket.pause()
  const closed = new Promise((resolve) => socket.on('error', resolve).on('close', resolve))
  const one = `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${secret}\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  socket.write(one.repeat(1_500))
  for (;;) if ((await settled.next()).abortedBy === 'client') break
  socket.resume()
  await closed
})

t.test('who takes little at a time, or waits for a slow upstream, is left alone', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { idleTimeoutMs: 3_000 } })
  const url = `${await listen(app)}/v1/chat/completions`
  queueLarge(upstream)
  const { reply } = call(url, { body })
  const message = await reply
  message.on('data', () => {
    message.pause()
    // Some hundred times: it takes longer in all than a caller may stand still.
    setTimeout(() => message.resume(), 6)
  })
  t.match(await settled.next(), { outcome: 'ok', usage: { tokens: { input: 1, output: 2 } } })
})

t.test('a reply that is over is let go, whether its caller took all of it or left', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { idleTimeoutMs: 400, drain: { maxMs: 0 } } })
  const seen = { looks: 0 }
  app.addHook('onRequest', async (_request, { raw }) => {
    const { get } = Object.getOwnPropertyDescriptor(OutgoingMessage.prototype, 'writableLength') ?? {}
    Object.defineProperty(raw, 'writableLength', { get () { seen.looks += 1; return get?.call(raw) } })
  })
  const url = `${await listen(app)}/v1/chat/completions`
  upstream.queue({ split: [10], before: async (write) => { if (write === 1) while (seen.looks < 4) await sleep(20) } }, { stallAt: 10 })
  await read(await call(url, { body }).reply)
  t.match(await settled.next(), { outcome: 'ok' })
  const { request, reply } = call(url, { body })
  await reply
  request.destroy()
  t.match(await settled.next(), { outcome: 'client_abort' })
  const before = seen.looks
  await sleep(300)
  t.equal(seen.looks, before)
})

t.test('with 0 nobody is looked after', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, { forward: { idleTimeoutMs: 0 } })
  t.equal((await call(`${await listen(app)}/v1/chat/completions`, { body }).reply).statusCode, 200)
})

t.test('over HTTP/2 its stream is cut and no other, and does not end as a whole one', async (t) => {
  const upstream = await startUpstream(t)
  // Its types know of no server over HTTP/2 without TLS.
  const app = Fastify({ http2: true } as object)
  t.teardown(async () => await app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url, { forward: { idleTimeoutMs: 200, drain: { maxMs: 0 } } }))
  const settled = watchSettled(app)
  queueLarge(upstream)
  const session = connectH2(await listen(app))
  t.teardown(() => session.destroy())
  const ask = () => session
    .request({ ':method': 'POST', ':path': '/v1/chat/completions', authorization: `Bearer ${secret}`, 'content-type': 'application/json' })
    .end(body)
  const stuck = ask()
  const ended = new Promise((resolve) => stuck.on('error', ({ message }) => resolve(message)).on('end', () => resolve('whole')))
  t.match(await settled.next(), { outcome: 'client_abort' })
  stuck.resume()
  t.match(await ended, /NGHTTP2_INTERNAL_ERROR/)
  const other = ask()
  other.resume()
  t.match(await settled.next(), { outcome: 'ok' })
})
