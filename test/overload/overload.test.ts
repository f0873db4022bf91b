/** Requests that are refused because the process has too much to do. */
import { once } from 'node:events'
import { createServer as createHttp2Server, createSecureServer } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { PassThrough } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { ModelCall } from '../../plugins/core/call/model-call.js'
import { createResolve } from '../../plugins/core/url/resolve.js'
import llmGateway, { auth, overload, type OverloadOptions } from '../../plugins/index.js'
import { ActiveRequests, noRequests } from '../../plugins/overload/active-requests.js'
import { limitConnections } from '../../plugins/overload/connections.js'
import { Pressure } from '../../plugins/overload/pressure.js'
import { call, gatewayOptions, listen, read } from '../helpers/gateway.js'
import { listenAtTwo } from '../helpers/two-addresses.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { start, yaml } from '../standalone/run.js'
import { shed } from './shed.js'

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'

async function build (t: Test, upstream: Upstream, overload: OverloadOptions | false, health = {}): Promise<FastifyInstance> {
  const app = Fastify({ forceCloseConnections: true })
  t.teardown(async () => await app.close())
  const keys = ['greedy', 'modest', 'third'].map((id) => ({ id, group: 'all', secret: id }))
  await app.register(llmGateway, gatewayOptions(upstream.url, { keys, overload, health }))
  return app
}

async function ask (url: string, key: string): Promise<{ status: number | undefined, error: unknown, retryAfter: string | undefined }> {
  const message = await call(`${url}/v1/chat/completions`, { body, headers: { authorization: `Bearer ${key}` } }).reply
  const { error } = JSON.parse(String((await read(message)).bytes))
  return { status: message.statusCode, error, retryAfter: message.headers['retry-after'] }
}

t.test('beyond maxActive requests are refused natively before their body is read; the last fifth is for others than a greedy key', async (
  t
) => {
  const upstream = await startUpstream(t)
  let answer = (): void => {}
  const gate = new Promise<void>((resolve) => { answer = resolve })
  upstream.respond = () => ({ before: async () => await gate })
  const app = await build(t, upstream, { maxActive: 10, maxLoopDelayMs: 0 })
  const url = await listen(app)
  const running: Array<ReturnType<typeof ask>> = []
  const begin = async (key: string, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) {
      running.push(ask(url, key))
      await upstream.arrivals.next()
    }
  }
  await begin('greedy', 8)
  const refused = await ask(url, 'greedy')
  t.match(refused, { status: 503, error: { code: 'overloaded', message: /too busy/ }, retryAfter: /^[123]$/ })
  t.same(shed(app), { key_share: 1 })
  await begin('modest', 2)
  t.match(await ask(url, 'third'), { status: 503 })
  t.same(shed(app), { key_share: 1, active: 1 })
  const half = call(`${url}/v1/chat/completions`, { headers: { authorization: 'Bearer third', 'content-length': 1_000_000 }, body: '{' })
  t.equal((await half.reply).statusCode, 503, 'before its body')
  half.request.destroy()
  t.equal((await app.inject('/metrics')).statusCode, 200)
  answer()
  t.same(new Set((await Promise.all(running)).map(({ status }) => status)), new Set([200]))
  t.equal((await ask(url, 'third')).status, 200, 'places are free again')
})

t.test('beyond maxHeldBytes a large body is refused natively before it is read, whatever its route; small ones go on', async (t) => {
  const upstream = await startUpstream(t)
  const app = await build(t, upstream, { maxHeldBytes: 1_000_000, maxLoopDelayMs: 0 })
  const url = `${await listen(app)}/v1/chat/completions`
  const large = body.replace('"hi"', `"${'x'.repeat(600_000)}"`)
  const headers = { authorization: 'Bearer modest' }
  let answer = (): void => {}
  const gate = new Promise<void>((resolve) => { answer = resolve })
  upstream.queue({ fixture: 'chat_completions.json', before: async () => await gate })
  const first = call(url, { body: large, headers })
  await upstream.arrivals.next()
  const half = call(url, { headers: { ...headers, 'content-length': large.length }, body: '{' })
  const refused = await half.reply
  half.request.destroy()
  t.match(refused, { statusCode: 503, headers: { 'retry-after': /^[123]$/ } })
  const chunked = await call(url, { headers: { ...headers, 'transfer-encoding': 'chunked' }, body: large }).reply
  t.equal(chunked.statusCode, 503)
  t.same(shed(app), { body_memory: 2 })
  t.equal((await call(url, { body, headers }).reply).statusCode, 200)
  answer()
  t.equal((await first.reply).statusCode, 200)
  await read(await first.reply)
  t.equal((await call(url, { body: large, headers }).reply).statusCode, 200, 'its memory is free again')
})

t.test('what runs at a reload counts until its end: no place and no memory is given a second time', async (t) => {
  const upstream = await startUpstream(t)
  const large = body.replace('"hi"', `"${'x'.repeat(600_000)}"`)
  for (const [limit, sent] of [['maxActive: 1', body], ['maxHeldBytes: 1000000', large]] as const) {
    const { origin, gateway } = await start(t, yaml(upstream.url, ['key-a'], `overload: { maxLoopDelayMs: 0, ${limit} }`))
    const chat = async () => {
      const reply = await call(`${origin}/v1/chat/completions`, { body: sent, headers: { authorization: 'Bearer key-a' } }).reply
      await read(reply)
      return reply.statusCode
    }
    let answer = (): void => {}
    const gate = new Promise<void>((resolve) => { answer = resolve })
    upstream.queue({ fixture: 'chat_completions.json', before: async () => await gate })
    const first = chat()
    await upstream.arrivals.next()
    t.equal(await gateway.reload(), true)
    t.equal(await chat(), 503, limit)
    answer()
    t.equal(await first, 200)
    let status = 503
    for (const until = Date.now() + 10_000; status === 503 && Date.now() < until;) status = Number(await chat())
    t.equal(status, 200, 'and then they are free')
  }
})

t.test('two apps that share the health of upstreams count their own requests', async (t) => {
  const upstream = await startUpstream(t)
  const health = {}
  const limits = { maxActive: 1, maxLoopDelayMs: 0 }
  const [one, other] = [await build(t, upstream, limits, health), await build(t, upstream, limits, health)]
  let answer = (): void => {}
  const gate = new Promise<void>((resolve) => { answer = resolve })
  upstream.queue({ fixture: 'chat_completions.json', before: async () => await gate })
  const running = ask(await listen(one), 'modest')
  await upstream.arrivals.next()
  t.equal((await ask(await listen(other), 'modest')).status, 200)
  answer()
  t.equal((await running).status, 200)
})

t.test('while the event loop is late a share of requests is refused, other routes are not, and it goes on once it is in time', async (
  t
) => {
  const upstream = await startUpstream(t)
  const app = await build(t, upstream, { maxLoopDelayMs: 100 })
  app.get('/health', async () => 'ok')
  const busy = setInterval(() => {
    for (const until = performance.now() + 300; performance.now() < until;);
  }, 1)
  const inject = async () => (await app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: 'Bearer greedy', 'content-type': 'application/json' },
    payload: body,
  })).statusCode
  let status = 200
  for (const until = Date.now() + 60_000; status === 200 && Date.now() < until;) status = await inject()
  t.equal(status, 503)
  t.equal((await app.inject('/health')).statusCode, 200)
  t.ok(Number(shed(app)['loop_delay']) > 0)
  clearInterval(busy)
  let quiet = 0
  for (const until = Date.now() + 60_000; quiet < 20 && Date.now() < until;) {
    quiet = await inject() === 200 ? quiet + 1 : 0
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  t.equal(quiet, 20, 'recovered')
})

t.test('with a heap that is fuller than it may be every request is refused', async (t) => {
  const app = await build(t, await startUpstream(t), { maxHeapPercent: 1, maxLoopDelayMs: 0 })
  let status = 200
  for (const until = Date.now() + 60_000; status !== 503 && Date.now() < until;) {
    status = (await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: 'Bearer third' } })).statusCode
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.equal(status, 503)
  t.same(Object.keys(shed(app)), ['heap'])
})

t.test('the share that is refused grows with the delay, ends soon, and heeds no single pause', async (t) => {
  const pressure = new Pressure(100)
  const shares = [50, 5_000, 50, 150, 400, 400, 4_000, 4_000, 90, 90, 90, 90, 90, 90].map((delay) => {
    pressure.note(delay)
    return pressure.share
  })
  const expected = [0, 0, 0, 0, 0.75, 0.85, 0.975, 0.98, 0.49, 0.245, 0.122, 0.061, 0.031, 0]
  t.ok(shares.every((share, i) => Math.abs(share - Number(expected[i])) < 0.001), String(shares))
  pressure.note(NaN)
  t.equal(pressure.share, 0)
})

t.test('a call has one place, and gives back what it has', async (t) => {
  const active = new ActiveRequests(2, noRequests())
  const one = createResolve('')('POST', '/v1/chat/completions', {})
  if (one?.kind !== 'endpoint') throw new Error('no endpoint')
  const [a, b, c] = [new ModelCall(one), new ModelCall(one), new ModelCall(one)]
  t.equal(active.enter(a), null)
  t.equal(active.enter(a), null)
  t.equal(active.enter(b), null)
  t.equal(active.enter(c), 'active')
  active.leave(c)
  active.leave(a)
  t.equal(active.enter(c), null)
  active.leave(b)
  active.leave(c)
})

t.test('in the last fifth a key gets less than an equal share of the places, of which one is for the next key', async (t) => {
  const active = new ActiveRequests(12, noRequests())
  const resolved = createResolve('')('POST', '/v1/chat/completions', {})
  if (resolved?.kind !== 'endpoint') throw new Error('no endpoint')
  const enter = (id: string, call = new ModelCall(resolved)): string | null => {
    call.auth.key = { id, group: 'all', disabled: false, expiresAt: null, limits: {} }
    return active.enter(call)
  }
  t.strictSame([...'bbbbbbbaaa'].map((id) => enter(id)), Array.from({ length: 10 }, () => null))
  const gone = new ModelCall(resolved)
  t.equal(enter('c', gone), null)
  active.leave(gone)
  t.strictSame([...'aabcd'].map((id) => enter(id)), [null, 'key_share', 'key_share', null, 'active'], 'who has left takes no share')
})

async function open (port: number, address = '127.0.0.1'): Promise<Socket> {
  const socket = connect(port, address).on('error', () => {})
  await once(socket, 'connect')
  return socket
}

async function textOn (socket: Socket, request: string): Promise<string> {
  socket.write(request)
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

t.test('on a connection above their number a model request is refused in words before its body, anything else is served, and it ' +
  'is closed', async (
  t
) => {
  const upstream = await startUpstream(t)
  const app = await build(t, upstream, { maxConnections: 1 })
  const { origin } = await start(t, yaml(upstream.url, ['key-a'], 'overload: { maxConnections: 1 }'))
  for (const url of [await listen(app), origin]) {
    const port = Number(new URL(url).port)
    const first = await open(port)
    const head = 'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{'
    const refused = await Promise.race([textOn(await open(port), head), pause(4_000, 'its upload is waited for')])
    t.match(refused, /^HTTP\/1\.1 503 [^]*\nretry-after: [123]\r\n[^]*"code":"overloaded"/)
    t.match(refused, /\nconnection: close\r\n/i)
    t.match(await textOn(await open(port), 'GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n'), /^HTTP\/1\.1 200[^]*\nconnection: close\r\n/i)
    t.match(
      await textOn(first, 'GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'),
      /llm_gateway_shed_total\{reason="connections"\} 2\n/
    )
    const next = await textOn(await open(port), 'GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    t.match(next, /llm_gateway_shed_total\{reason="connections"\} 2\n/, 'a place is free again')
  }
})

t.test('connections at the second address of a name that has two are counted with those at the first', async (t) => {
  const app = await build(t, await startUpstream(t), { maxConnections: 2, maxLoopDelayMs: 0 })
  const [first, second] = await listenAtTwo(t, app)
  if (first === undefined || second === undefined) throw new Error('no two addresses')
  const held: Socket[] = []
  for (const { port, address } of [first, second]) {
    const socket = await open(port, address)
    held.push(socket)
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    await once(socket, 'data')
  }
  const head = ['POST /v1/chat/completions HTTP/1.1', 'host: a', 'content-type: application/json', 'connection: close', 'content-length: 2']
  const post = [...head, '', '{}'].join('\r\n')
  for (const { port, address } of [first, second]) t.match(await textOn(await open(port, address), post), /^HTTP\/1\.1 503 /, address)
  t.same(shed(app), { connections: 2 })
  for (const socket of held) socket.destroy()
})

t.test('of connections that ask nothing, few are kept for a while, and none for long; what one has asked is answered', async (t) => {
  const app = await build(t, await startUpstream(t), { maxConnections: 1 })
  let answer = (): void => {}
  const gate = new Promise<void>((resolve) => { answer = resolve })
  app.get('/slow', async () => await gate.then(() => 'answered'))
  const port = Number(new URL(await listen(app)).port)
  const sockets = await Promise.all(Array.from({ length: 80 }, async () => await open(port)))
  const closed = sockets.map(async (socket) => await new Promise((resolve) => socket.resume().once('close', resolve)))
  await Promise.any(closed)
  const since = performance.now()
  const kept = sockets.filter((socket) => !socket.destroyed)
  t.ok(kept.length >= 65, 'the most that may wait')
  sockets[0]?.destroy()
  const asking = kept.find((socket) => socket !== sockets[0])
  if (asking === undefined) throw new Error('none is kept')
  const reply = textOn(asking, 'GET /slow HTTP/1.1\r\nhost: a\r\n\r\n')
  const others = Promise.all(closed.filter((_, at) => sockets[at] !== asking)).then(() => 'closed')
  // Node itself would close them after a minute.
  t.equal(await Promise.race([others, pause(45_000, 'still open', { ref: false })]), 'closed')
  t.ok(performance.now() - since > 1_000)
  answer()
  t.match(await reply, /^HTTP\/1\.1 200[^]*answered/)
})

t.test('over HTTP/2 they are closed at once, over TLS they are told', async (t) => {
  const server = createSecureServer()
  const plain = createHttp2Server()
  for (const [one, most] of [[plain, 1], [server, 1]] as const) {
    const made: string[] = []
    limitConnections(Object(one), most, () => made.push('shed'))
    const event = one === server ? 'secureConnection' : 'connection'
    const sockets = [new PassThrough(), new PassThrough()]
    for (const socket of sockets) one.listeners(event).at(-1)?.call(one, socket)
    t.strictSame(sockets.map(({ destroyed }) => destroyed), [false, true])
    t.strictSame(made, ['shed'])
  }
  const tls = createHttpsServer()
  limitConnections(tls, 1, () => {})
  const sockets = [new PassThrough(), new PassThrough()]
  for (const socket of sockets) tls.listeners('secureConnection').at(-1)?.call(tls, socket)
  t.strictSame(sockets.map(({ destroyed }) => destroyed), [false, false])
})

t.test('connections whose handshake of TLS does not end are bounded, too', async (t) => {
  // It needs no certificate.
  const secret = { ciphers: 'PSK', maxVersion: 'TLSv1.2', pskCallback: () => Object({ psk: Buffer.alloc(16, 1), identity: 'a' }) } as const
  const server = createHttpsServer({ ...secret, pskCallback: () => Buffer.alloc(16, 1) }, (_request, reply) => reply.end('ok'))
  t.teardown(() => server.close())
  const made: string[] = []
  limitConnections(server, 1, () => made.push('shed'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = Object(server.address())
  const silent = await Promise.all(Array.from({ length: 160 }, async () => await open(port)))
  while (made.length < 31) await pause(1)
  t.equal(silent.length - made.length, 129)
  for (const socket of silent) socket.destroy()
  const ask = async (): Promise<string> => {
    const socket = connectTls({ ...secret, port, host: '127.0.0.1', checkServerIdentity: () => undefined }).on('error', () => {})
    return await textOn(socket, 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n').catch(() => '')
  }
  while (await ask() === '') await pause(1)
  const replies = new Set<string>()
  for (let i = 0; i < 140; i++) replies.add((await ask()).slice(0, 12))
  t.strictSame([...replies], ['HTTP/1.1 200'], 'what has ended is not counted')
})

t.test('what needs no key is refused before anybody asks for one', async (t) => {
  const app = await build(t, await startUpstream(t), { maxHeapPercent: 1, maxLoopDelayMs: 0 })
  let status = 401
  for (const until = Date.now() + 60_000; status === 401 && Date.now() < until;) {
    status = (await app.inject({ method: 'POST', url: '/v1/chat/completions', payload: body })).statusCode
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.equal(status, 503)
})

t.test('the plugin alone, after auth, does all of it', async (t) => {
  const app = Fastify()
  t.teardown(async () => await app.close())
  await app.register(auth, { groups: { all: { protocols: ['chat_completions'] } }, keys: [{ id: 'a', group: 'all', secret: 'a' }] })
  await app.register(overload, { maxHeapPercent: 1 })
  app.post('/v1/chat/completions', async () => 'ok')
  let status = 200
  for (const until = Date.now() + 60_000; status === 200 && Date.now() < until;) {
    status = (await app.inject({
      method: 'POST',
      url: '/v1/chat/completions',
      headers: { authorization: 'Bearer a', 'content-type': 'application/json' },
      payload: body,
    })).statusCode
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.equal(status, 503)
})

t.test('an app that did not ask for it watches nothing, and options that are wrong fail the start', async (t) => {
  const upstream = await startUpstream(t)
  await build(t, upstream, false)
  for (const overload of [{ maxActive: 0 }, { queueMs: 0 }, { queueMs: 2 ** 31 }, { maxLoopDelayMs: -1 }, { unknown: 1 }, true]) {
    const app = Fastify()
    const options = Object.assign(gatewayOptions(upstream.url), { overload })
    await t.rejects(async () => await app.register(llmGateway, options), { code: 'LLM_GATEWAY_OPTION', message: /option (?:llmGateway\.)?overload/ })
  }
})
