/** How often a request is sent in a mount of the host, where the gateway chooses the upstream. */
import type { FastifyReplyFromHooks } from '@fastify/reply-from'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { everyProtocol, secret, watchSettled } from '../helpers/gateway.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'

const headers = { authorization: `Bearer ${secret}` }

async function start (t: Test, upstream: string, url: string, replyOptions: FastifyReplyFromHooks): Promise<FastifyInstance> {
  const app = Fastify()
  t.teardown(async () => await app.close())
  await app.register(llmGateway, {
    routes: false,
    upstreams: { a: { url }, b: { url } },
    pools: { pool: { members: ['a', 'b'], attempts: 2 } },
    groups: { all: { protocols: everyProtocol, upstream } },
    keys: [{ id: 'caller', group: 'all', secret }],
  })
  await app.register(httpProxy, { ...proxyOptions(), upstream: 'http://127.0.0.1:9', prefix: '/v1', rewritePrefix: '/v1', replyOptions })
  return app
}

async function busy (t: Test): Promise<Upstream> {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ status: 503, headers: { 'retry-after': '30' }, body: { error: { message: 'busy' } } })
  return upstream
}

for (const [name, attempts] of [['a', 1], ['pool', 2]] as const) {
  t.test(`a GET that meets 503 is sent as often as ${name} says, and no more`, async (t) => {
    const upstream = await busy(t)
    const hooks = { rewriteRequestHeaders: (_: unknown, given: Record<string, string>) => ({ ...given, 'x-host': 'yes' }) }
    for (const replyOptions of [{}, hooks]) {
      const app = await start(t, name, upstream.url, replyOptions)
      for (const url of ['/v1/models', '/v1/responses/resp_1']) {
        const before = upstream.seen.length
        const reply = await app.inject({ url, headers })
        t.match([reply.statusCode, reply.headers['retry-after']], [503, '30'])
        t.equal(upstream.seen.length - before, attempts, url)
      }
    }
  })
}

t.test('a mount that says itself when to send again is heard', async (t) => {
  const upstream = await busy(t)
  const app = await start(t, 'a', upstream.url, { retryDelay: ({ attempt }) => Number(attempt) < 2 ? 1 : null })
  const settled = watchSettled(app)
  t.equal((await app.inject({ url: '/v1/models', headers })).statusCode, 503)
  t.equal(upstream.seen.length, 3)
  await settled.next()
  t.match(gatewayOf(app).upstreamsStatus().upstreams, [{ active: 0 }, { active: 0 }], 'it counts once for its upstream, and no longer')
})
