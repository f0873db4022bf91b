/** Requests that wait for a connection to their upstream. */
import { setTimeout as pause } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { proxyOptions } from '../../plugins/forward/index.js'
import llmGateway from '../../plugins/index.js'
import { call, everyProtocol, gatewayOptions, listen, read, startGateway, watchSettled } from '../helpers/gateway.js'
import { Signal, startUpstream, type Upstream } from '../helpers/upstream.js'
import { shed } from '../overload/shed.js'

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'

/** How many connections were made to it. */
function connectionsOf ({ server }: Upstream): () => number {
  let opened = 0
  server.on('connection', () => { opened += 1 })
  return () => opened
}

/** Answers only once it is told to. */
function silent (upstream: Upstream): () => void {
  let answer = (): void => {}
  const gate = new Promise<void>((resolve) => { answer = resolve })
  upstream.respond = () => ({ before: async () => await gate })
  return answer
}

async function ask (url: string): Promise<{ status: number | undefined, code: unknown, ms: number, retryAfter: string | undefined }> {
  const startedAt = performance.now()
  const message = await call(`${url}/v1/chat/completions`, { body }).reply
  const { bytes } = await read(message)
  const { error } = JSON.parse(String(bytes))
  return { status: message.statusCode, code: error?.code, ms: performance.now() - startedAt, retryAfter: message.headers['retry-after'] }
}

async function ownRoutes (t: Test, upstream: Upstream, transport: object): Promise<FastifyInstance> {
  return (await startGateway(t, upstream.url, { forward: transport })).app
}

async function mount (t: Test, upstream: Upstream, transport: object, more: object = {}): Promise<FastifyInstance> {
  const app = Fastify()
  t.teardown(async () => await app.close())
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  await app.register(httpProxy, { ...proxyOptions(transport), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', ...more })
  return app
}

async function pool (t: Test, upstream: Upstream, transport: object): Promise<FastifyInstance> {
  return (await startGateway(t, upstream.url, {
    pools: { pool: { members: ['main'] } }, groups: { all: { protocols: everyProtocol, upstream: 'pool' } }, forward: transport,
  })).app
}

const places = {
  'own routes': ownRoutes,
  'an adapted mount': mount,
  'a mount with hooks of its own': async (t: Test, upstream: Upstream, transport: object) => {
    return await mount(t, upstream, transport, { replyOptions: { rewriteRequestHeaders: (_: unknown, headers: object) => headers } })
  },
}

for (const [name, start] of Object.entries(places)) {
  t.test(`on ${name}, who waits too long or behind too many is told 503, however long replies may take`, async (t) => {
    const upstream = await startUpstream(t)
    const answer = silent(upstream)
    const app = await start(t, upstream, { connections: 2, queueMs: 2_000, maxQueued: 10 })
    const settled = watchSettled(app)
    const url = await listen(app)
    const running = [ask(url), ask(url)]
    await upstream.arrivals.next()
    await upstream.arrivals.next()
    const others = await Promise.all(Array.from({ length: 15 }, async () => await ask(url)))
    for (const { status, code, retryAfter } of others) {
      t.match([status, code], [503, 'overloaded'])
      t.match(retryAfter, /^[123]$/)
    }
    t.same(shed(app), { queue_full: 5, queue_timeout: 10 })
    for (let i = 0; i < 15; i++) {
      t.match(await settled.next(), {
        outcome: 'gateway_error', upstreamReply: { status: 0 }, usage: { missing: null }, times: { sentAt: 0 },
      })
    }
    const last = ask(url)
    answer()
    t.same((await Promise.all([...running, last])).map(({ status }) => status), [200, 200, 200], 'who waits for a short time is served')
    t.equal(upstream.seen.length, 3, 'nothing that was refused went upstream')
  })
}

for (const [name, start] of Object.entries({ ...places, 'a pool': pool })) {
  t.test(`on ${name}, callers that leave while they wait are not waited for, and break no connection`, async (t) => {
    const upstream = await startUpstream(t)
    const opened = connectionsOf(upstream)
    const answer = silent(upstream)
    const app = await start(t, upstream, { connections: 1, queueMs: 60_000, maxQueued: 20 })
    const settled = watchSettled(app)
    const url = await listen(app)
    const running = ask(url)
    await upstream.arrivals.next()
    const gone = Array.from({ length: 20 }, () => call(`${url}/v1/chat/completions`, { body: body.padEnd(1_000) }))
    await pause(500)
    for (const { request } of gone) request.destroy()
    for (let i = 0; i < 20; i++) t.match(await settled.next(), { outcome: 'client_abort', times: { sentAt: 0 } })
    const waiting = ask(url)
    await pause(200)
    answer()
    t.same((await Promise.all([running, waiting])).map(({ status }) => status), [200, 200], 'their places are free')
    t.same([upstream.seen.length, opened()], [2, 1])
  })
}

t.test('a caller that leaves while a hook of the host waits breaks no connection', async (t) => {
  const upstream = await startUpstream(t)
  const opened = connectionsOf(upstream)
  const { app, settled } = await startGateway(t, upstream.url)
  const held = new Signal<() => void>()
  app.addHook('preHandler', async ({ headers }) => {
    if (headers['x-held'] !== undefined) await new Promise<void>((resolve) => held.push(resolve))
  })
  const url = await listen(app)
  await ask(url)
  await settled.next()
  const { request } = call(`${url}/v1/chat/completions`, { body, headers: { 'x-held': 'yes' } })
  const goOn = await held.next()
  request.destroy()
  t.match(await settled.next(), { outcome: 'client_abort' })
  goOn()
  t.equal((await ask(url)).status, 200)
  t.same([upstream.seen.length, opened()], [2, 1])
})

for (const [name, start] of Object.entries({ 'own routes': ownRoutes, 'a pool': pool })) {
  t.test(`on ${name}, a caller that leaves while its connection is made is not sent`, async (t) => {
    const upstream = await startUpstream(t)
    const looked = new Signal<() => void>()
    const lookup = (_host: string, _options: object, found: (error: null, addresses: object[]) => void): void => {
      looked.push(() => found(null, [{ address: '127.0.0.1', family: 4 }]))
    }
    const app = await start(t, Object.create(upstream, { url: { value: `http://upstream.test:${upstream.port}` } }), { tls: { lookup } })
    const settled = watchSettled(app)
    const url = await listen(app)
    const { request } = call(`${url}/v1/chat/completions`, { body })
    const connect = await looked.next()
    request.destroy()
    t.match(await settled.next(), { outcome: 'client_abort', times: { sentAt: 0 } })
    connect()
    const next = ask(url)
    const connectNext = await looked.next()
    connectNext()
    t.equal((await next).status, 200)
    t.equal(upstream.seen.length, 1)
  })
}

t.test('a place that an upstream failed in is free again', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, { forward: { connections: 1 } })
  const url = await listen(app)
  upstream.queue({ cutAt: 'headers' })
  t.equal((await ask(url)).status, 502)
  t.same((await Promise.all([ask(url), ask(url), ask(url)])).map(({ status }) => status), [200, 200, 200])
})

t.test('one that comes later waits as long as the one before', async (t) => {
  const upstream = await startUpstream(t)
  silent(upstream)
  const { app } = await startGateway(t, upstream.url, { forward: { connections: 1, queueMs: 300 } })
  const url = await listen(app)
  const running = call(`${url}/v1/chat/completions`, { body })
  await upstream.arrivals.next()
  const first = ask(url)
  await new Promise((resolve) => setTimeout(resolve, 150))
  const [a, b] = await Promise.all([first, ask(url)])
  t.same([a.status, b.status], [503, 503])
  t.ok(a.ms >= 290 && b.ms >= 290, `${a.ms} ${b.ms}`)
  t.equal((await ask(url)).status, 503, 'and so does one that comes when none waits any more')
  running.request.destroy()
})
