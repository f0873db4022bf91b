/** Connections to an upstream are shared: what happens on one belongs to the request that it happens for, not to the one that opened it. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { call, everyProtocol, gatewayOptions, listen, read, secret } from '../helpers/gateway.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'

const headers = { authorization: `Bearer ${secret}` }

const fronts: ReadonlyArray<readonly [name: string, mount: (app: FastifyInstance, url: string) => Promise<void>]> = [
  ['our own routes', async (app, url) => { await app.register(llmGateway, gatewayOptions(url)) }],
  ['an adapted mount', async (app, url) => {
    await app.register(llmGateway, { ...gatewayOptions(url), routes: false })
    await app.register(httpProxy, { upstream: url, ...proxyOptions() })
  }],
]

interface Seen {
  readonly hook: string
  /** The number of the request whose context it ran in. */
  readonly in: number | undefined
  readonly of: number
}

/** A host that keeps what belongs to a request in its asynchronous context. */
async function host (
  t: Test, upstream: Upstream, mount: (app: FastifyInstance, url: string) => Promise<void>
): Promise<{ url: string, seen: Seen[] }> {
  const app = Fastify({ genReqId: () => String(count += 1) })
  let count = 0
  t.teardown(() => app.close())
  const current = new AsyncLocalStorage<number>()
  const seen: Seen[] = []
  app.addHook('onRequest', (request, _reply, done) => { current.run(Number(request.id), done) })
  for (const hook of ['preHandler', 'onSend'] as const) {
    app.addHook(hook, async (request: { id: string }) => { seen.push({ hook, in: current.getStore(), of: Number(request.id) }) })
  }
  app.addHook('onResponse', async (request, reply) => {
    if (reply.getHeader('content-type') === 'application/json') {
      seen.push({ hook: 'onResponse', in: current.getStore(), of: Number(request.id) })
    }
  })
  await mount(app, upstream.url)
  return { url: await listen(app), seen }
}

for (const [name, mount] of fronts) {
  t.test(`hooks of the host run in the asynchronous context of their own request: ${name}`, async (t) => {
    const upstream = await startUpstream(t)
    const { url, seen } = await host(t, upstream, mount)
    const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    for (const fixture of ['chat_completions.json', 'chat_completions.include_usage.sse', 'chat_completions.json']) {
      upstream.queue({ fixture })
      await read(await call(`${url}/v1/chat/completions`, { headers, body }).reply)
    }
    upstream.queue({ cutAt: 'headers' })
    t.equal((await call(`${url}/v1/chat/completions`, { headers, body }).reply).statusCode, 502)
    t.equal(seen.filter(({ hook }) => hook === 'onSend').length, 4)
    t.strictSame(seen.filter((each) => each.in !== each.of), [])
  })
}

t.test('what instruments the HTTP client finds each request in its own context, also one that waited or is sent again', async (t) => {
  const upstream = await startUpstream(t)
  const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
  const main = { url: upstream.url }
  const pool = {
    upstreams: { main: { ...main, credential: async () => 'later' }, other: main },
    pools: { pool: { members: [{ upstream: 'main', tier: 1 }, { upstream: 'other', tier: 2 }] } },
    groups: { all: { protocols: everyProtocol, upstream: 'pool' } },
  }
  const alone = { ...pool, pools: { pool: { members: ['main'] } } }
  const current = new AsyncLocalStorage<string>()
  const seen: Array<readonly [sent: string, store: string | undefined]> = []
  const created = (message: unknown): void => {
    const sent = /x-number(?:,|: )(\w+)/.exec(String(Reflect.get(Object(Reflect.get(Object(message), 'request')), 'headers')))?.[1]
    if (sent !== undefined) seen.push([sent, current.getStore()])
  }
  subscribe('undici:request:create', created)
  t.teardown(() => unsubscribe('undici:request:create', created))
  for (const options of [{}, pool, alone]) {
    seen.length = 0
    const app = Fastify()
    t.teardown(() => app.close())
    app.addHook('onRequest', (request, _reply, done) => { current.run(String(request.headers['x-number']), done) })
    await app.register(llmGateway, { ...gatewayOptions(upstream.url, options), forward: { connections: 1, queueMs: 60_000 } })
    const url = await listen(app)
    const refusal = { status: 503, body: {}, before: async () => await new Promise<void>((resolve) => { setTimeout(resolve, 20) }) }
    upstream.queue(refusal, refusal, refusal)
    await Promise.all(['one', 'two', 'three'].map(async (number) => {
      await read(await call(`${url}/v1/chat/completions`, { headers: { ...headers, 'x-number': number }, body }).reply)
    }))
    t.equal(seen.length, 'pools' in options ? 6 : 3)
    t.strictSame(seen.filter(([sent, store]) => sent !== store), [])
  }
})
