/** Connections to an upstream are shared: what happens on one belongs to the request that it happens for, not to the one that opened it. */
import { AsyncLocalStorage } from 'node:async_hooks'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { call, gatewayOptions, listen, read, secret } from '../helpers/gateway.js'
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
