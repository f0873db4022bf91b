/** A host that speaks HTTP/2: Node is never told that a caller has gone who broke the protocol before. */
import { once } from 'node:events'
import { connect as connectClient, type ServerHttp2Session } from 'node:http2'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectOverTls } from 'node:tls'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway from '../plugins/index.js'
import type { ModelCall } from '../plugins/core/call/model-call.js'
import { certificate, withoutTls } from './helpers/certificate.js'
import { gatewayOptions, secret, watchSettled } from './helpers/gateway.js'
import { acknowledged, data, ends, goAway, opening, request, requestOn, wideWindows, wrongPing } from './helpers/http2-frames.js'
import { Signal, startUpstream, type Upstream } from './helpers/upstream.js'

const fixture = 'chat_completions.include_usage.sse'
const body = JSON.stringify({
  model: 'm', stream: true, stream_options: { include_usage: true }, messages: [{ role: 'user', content: 'hi' }],
})
const asked = { ':method': 'POST', ':path': '/v1/chat/completions', 'content-type': 'application/json' }
const key = { authorization: `Bearer ${secret}` }
const head = { ':scheme': 'http', ':authority': 'gateway.test', ...asked }

interface Started {
  readonly url: string
  readonly upstream: Upstream
  readonly begun: Signal<string>
  readonly settled: Signal<ModelCall>
  readonly sessions: ServerHttp2Session[]
}

/** `patienceMs` in place of the five minutes for which a caller may be silent. */
async function start (t: Test, patienceMs: number, https?: object): Promise<Started> {
  const { setTimeout } = globalThis
  t.intercept(globalThis, 'setTimeout', {
    value: (done: () => void, ms: number, ...rest: []) => setTimeout(done, ms === 300_000 ? patienceMs : ms, ...rest),
  })
  const upstream = await startUpstream(t)
  const app: FastifyInstance = Object(https === undefined ? Fastify({ http2: true }) : Fastify({ http2: true, https }))
  t.teardown(() => app.close())
  const begun = new Signal<string>()
  app.addHook('onRequest', async ({ url }) => { begun.push(url) })
  app.get('/large', async () => 'x'.repeat(64_000_000))
  await app.register(llmGateway, gatewayOptions(upstream.url, { forward: { drain: { maxMs: 0 } } }))
  const settled = watchSettled(app)
  const sessions: ServerHttp2Session[] = []
  app.server.on('session', (session: ServerHttp2Session) => sessions.push(session))
  return { url: await app.listen({ port: 0, host: '127.0.0.1' }), upstream, begun, settled, sessions }
}

t.test('a request whose caller broke the protocol and left is settled', async (t) => {
  const { url, upstream, begun, settled, sessions } = await start(t, 10)
  const sent = {
    'within its reply': [request({ ...head, ...key }), data(ends, body), 'client_abort'],
    'within its upload': [request({ ...head, ...key }), data(0, body.slice(0, 9)), 'client_abort'],
    'without a key': [request(head), data(0, body), 'auth_error'],
  } as const
  for (const [name, [first, second, outcome]] of Object.entries(sent)) {
    upstream.queue({ fixture, stallAt: 300 })
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {}).resume()
    await once(socket, 'connect')
    socket.write(Buffer.concat([first, second]))
    await begun.next()
    await pause(50)
    socket.write(Buffer.concat([goAway, wrongPing]))
    await pause(20)
    socket.destroy()
    // After 72 seconds in which nothing moved.
    sessions.at(-1)?.emit('timeout')
    t.match(await settled.next(), { outcome }, name)
  }
})

t.test('over TLS its connection is closed, too', { skip: withoutTls }, async (t) => {
  const { url, begun, sessions } = await start(t, 10, certificate(t))
  const socket = connectOverTls({ port: Number(new URL(url).port), host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  await once(socket.on('error', () => {}).resume(), 'secureConnect')
  // More than a connection has room for, which breaks the protocol.
  const piece = 'x'.repeat(16_000)
  const uploads = [1, 3, 5, 7].flatMap((stream) => [
    requestOn(stream, { ...head, ...key }), data(0, piece, stream), data(0, piece, stream), data(ends, piece, stream),
  ])
  socket.write(Buffer.concat([opening, ...uploads]))
  await begun.next()
  const [session] = sessions
  if (session === undefined) throw new Error('no session')
  // From Node 24 on it is told of the error, too, with which `once` would end.
  const closed = new Promise((resolve) => session.once('close', resolve))
  socket.destroy()
  session.emit('timeout')
  await closed
  t.equal(session.destroyed, true)
})

t.test('that of a caller who reads nothing is closed', async (t) => {
  const { url, begun, settled, sessions } = await start(t, 10)
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  socket.write(Buffer.concat([opening, wideWindows, requestOn(1, head), data(ends, body)]))
  await settled.next()
  socket.write(requestOn(3, { ':method': 'GET', ':scheme': 'http', ':authority': 'gateway.test', ':path': '/large' }))
  socket.write(data(ends, '', 3))
  await begun.next()
  await begun.next()
  await pause(500)
  const [session] = sessions
  if (session === undefined) throw new Error('no session')
  const closed = once(session, 'close')
  session.emit('timeout')
  await closed
  t.equal(session.destroyed, true)
})

t.test('one that acknowledged late, and then broke the protocol, is asked again', async (t) => {
  const { url, upstream, begun, settled, sessions } = await start(t, 500)
  upstream.queue({ fixture, stallAt: 300 })
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {}).resume()
  await once(socket, 'connect')
  socket.write(Buffer.concat([request({ ...head, ...key }), data(ends, body), acknowledged]))
  await begun.next()
  sessions[0]?.emit('timeout')
  socket.write(acknowledged)
  await pause(50)
  socket.write(Buffer.concat([goAway, wrongPing]))
  await pause(20)
  socket.destroy()
  t.match(await settled.next(), { outcome: 'client_abort' })
})

t.test('a session that ends at its timeout is asked nothing', async (t) => {
  const { url, upstream, settled, sessions } = await start(t, 500)
  upstream.queue({ fixture })
  const client = connectClient(url)
  t.teardown(() => client.destroy())
  client.request({ ...asked, ...key }).resume().end(body)
  await settled.next()
  const [session] = sessions
  session?.prependOnceListener('timeout', () => session.destroy()).emit('timeout')
  t.equal(session?.destroyed, true)
})

t.test('a caller that waits in silence is there, and gets its reply', async (t) => {
  const { url, upstream, begun, settled, sessions } = await start(t, 1_000)
  let go = (): void => {}
  const late = new Promise<void>((resolve) => { go = resolve })
  upstream.queue({ fixture, before: async () => await late })
  const client = connectClient(url)
  t.teardown(() => client.destroy())
  const stream = client.request({ ...asked, ...key }).resume().end(body)
  await begun.next()
  // It is asked once at a time.
  sessions[0]?.emit('timeout')
  sessions[0]?.emit('timeout')
  setTimeout(go, 1_500)
  const [{ ':status': status }] = await once(stream, 'response')
  t.equal(status, 200)
  t.match(await settled.next(), { outcome: 'ok' })
})
