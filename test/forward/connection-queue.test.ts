/** Requests that wait for a connection to their upstream. */
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { proxyOptions } from '../../plugins/forward/index.js'
import llmGateway from '../../plugins/index.js'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { call, gatewayOptions, listen, read, startGateway, watchSettled } from '../helpers/gateway.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'

function shed (app: FastifyInstance): Record<string, number> {
  const family = gatewayOf(app).metrics.find(({ name }) => name.endsWith('shed_total'))
  const counts = (family?.read() ?? []).map((reading) => [
    String(reading.labels['reason']), 'value' in reading ? reading.value : NaN,
  ] as const)
  return Object.fromEntries(counts.filter(([, count]) => count !== 0))
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

t.test('a caller that leaves while it waits takes no place, and is not sent later', async (t) => {
  const upstream = await startUpstream(t)
  const answer = silent(upstream)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { connections: 1, queueMs: 60_000 } })
  const url = await listen(app)
  const running = ask(url)
  await upstream.arrivals.next()
  const gone = call(`${url}/v1/chat/completions`, { body: body.padEnd(1_000) })
  const waiting = ask(url)
  await new Promise((resolve) => setTimeout(resolve, 200))
  gone.request.destroy()
  t.match(await settled.next(), { outcome: 'client_abort', times: { sentAt: 0 } })
  answer()
  t.same((await Promise.all([running, waiting])).map(({ status }) => status), [200, 200])
  t.equal(upstream.seen.length, 2)
})

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
  running.request.destroy()
})
