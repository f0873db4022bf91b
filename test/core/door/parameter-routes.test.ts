/** Routes of a host whose parameters may stand for parts of an endpoint's path. */
import httpProxy from '@fastify/http-proxy'
import replyFrom from '@fastify/reply-from'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { paths, proxyOptions, type LlmGatewayOptions } from '../../../plugins/index.js'
import { gatewayOptions, secret } from '../../helpers/gateway.js'
import { startUpstream, type Upstream } from '../../helpers/upstream.js'

async function start (
  t: Test, options: Partial<LlmGatewayOptions>, add: (app: FastifyInstance, upstream: string) => unknown
): Promise<{ app: FastifyInstance, upstream: Upstream }> {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url, options))
  await app.register(replyFrom, { base: upstream.url })
  await add(app, upstream.url)
  return { app, upstream }
}

const routes: ReadonlyArray<[route: string, url: string, prefix?: string]> = [
  ['/v1/:resource', '/v1/users'],
  ['/v1/:resource/:id', '/v1/users/5'],
  ['/v1/:id.json', '/v1/a.json'],
  ['/v1/::verb', '/v1/:verb'],
  ['/:version/:resource', '/v1/users'],
  ['/:version/:resource/:id', '/v1/users/5'],
  ['/v1beta/:resource', '/v1beta/users'],
  ['/llm/:version/:resource', '/llm/v1/users', '/llm'],
]

for (const [route, url, prefix = ''] of routes) {
  t.test(`beside the gateway's own routes a host's route with a parameter is its own: ${route}`, async (t) => {
    const { app } = await start(t, { prefix }, (app) => app.get(route, async () => 'the host'))
    t.match(await app.inject(url), { statusCode: 200, body: 'the host' })
    t.equal((await app.inject(`${prefix}/v1/models`)).statusCode, 401, 'the endpoint keeps its guard')
  })
}

t.test('what such a route sends to an endpoint in other letters is asked for a key', async (t) => {
  const { app, upstream } = await start(t, {}, (app) => {
    app.all('/:version/:resource', (request, reply) => { reply.from(request.url) })
    // Without an address it is sent to the one that was asked for.
    app.all('/:version/:resource/:id', (_, reply) => { reply.from('') })
  })
  const headers = { 'content-type': 'application/json' }
  const payload = '{"model":"m","messages":[]}'
  for (const url of ['/V1/messages', '/V1/chat/completions', '/V%31/messages', '/V1/Models/m']) {
    for (const key of [{}, { authorization: `Bearer ${secret}` }]) {
      t.ok((await app.inject({ method: 'POST', url, headers: { ...headers, ...key }, payload })).statusCode >= 400, url)
    }
  }
  t.strictSame(upstream.seen, [])
  t.equal((await app.inject('/v1/users')).statusCode, 200)
})

t.test('a host\'s route in front of the wildcard of an endpoint sends nothing unasked', async (t) => {
  const { app, upstream } = await start(t, {}, (app) => app.post('/v1beta/models/:name', (request, reply) => { reply.from(request.url) }))
  t.equal((await app.inject({ method: 'POST', url: '/v1beta/models/a$' })).statusCode, 404)
  t.equal((await app.inject({ method: 'POST', url: '/v1beta/models/m:generateContent' })).statusCode, 401)
  t.strictSame(upstream.seen, [])
})

t.test('a mount with a parameter, at a path that no endpoint has, is the host\'s, with all that is below it', async (t) => {
  const { app, upstream } = await start(t, {}, (app, upstream) => (
    app.register(httpProxy, { upstream, prefix: '/api/:tenant', rewritePrefix: '/v1' })
  ))
  for (const url of ['/api/a', '/api/a/users']) t.equal((await app.inject({ method: 'POST', url })).statusCode, 200, url)
  t.strictSame(upstream.seen.map(({ url }) => url), ['/v1', '/v1/users'])
})

t.test('without keys it is sent, as nobody is kept out', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(paths)
  await app.register(replyFrom, { base: upstream.url })
  app.all('/:version/:resource', (request, reply) => { reply.from(request.url) })
  t.equal((await app.inject({ method: 'POST', url: '/V1/messages', payload: { model: 'm', messages: [] } })).statusCode, 200)
  t.strictSame(upstream.seen.map(({ url }) => url), ['/V1/messages'])
})

for (const isBesideMount of [false, true]) {
  const where = isBesideMount ? 'beside an adapted mount' : 'alone'
  t.test(`without routes of the gateway's such a route sends no path of a version that is no endpoint: ${where}`, async (t) => {
    const { app, upstream } = await start(t, { routes: false }, async (app, upstream) => {
      if (isBesideMount) await app.register(httpProxy, { ...proxyOptions(), upstream, prefix: '/v1', rewritePrefix: '/v1' })
      for (const url of ['/v1/:resource', '/v1/:resource/*', '/:version/:resource/:id']) {
        app.all(url, (request, reply) => { reply.from(request.url) })
      }
    })
    for (const url of ['/v1/files', '/v1/files/1', '/v1/models/m', '/v1/messages', '/v1/messages/batches', '/v1/responses/r/input_items']) {
      t.ok((await app.inject(url)).statusCode >= 400, url)
    }
    t.strictSame(upstream.seen, [])
  })
}

const withCredential = { rewriteRequestHeaders: (_: unknown, headers: object) => ({ ...headers, authorization: 'Bearer mount' }) }

for (const [prefix, rewritePrefix, urls] of [
  ['/:any', '/v1', ['/any/files', '/any/completions']],
  ['/:any', '/:any', ['/V1/files', '/v1alpha/files', '/V1/files/x']],
  ['/:any/:b', '/:any/:b', ['/V1/files', '/v1alpha/files']],
] as const) {
  t.test(`beside adapted mounts a plain mount with parameters sends nothing unasked: ${prefix} to ${rewritePrefix}`, async (t) => {
    const { app, upstream } = await start(t, { routes: false }, async (app, upstream) => {
      for (const own of ['/v1', '/v1beta']) {
        await app.register(httpProxy, { ...proxyOptions(), upstream, prefix: own, rewritePrefix: own })
      }
      await app.register(httpProxy, { upstream, prefix, rewritePrefix, replyOptions: withCredential })
    })
    for (const url of urls) t.equal((await app.inject(url)).statusCode, 404, url)
    t.strictSame(upstream.seen, [])
  })
}

for (const prefix of ['/v1/:resource', '/:version/:resource']) {
  t.test(`beside the gateway's own routes a plain mount with parameters sends nothing unasked: ${prefix}`, async (t) => {
    const { app, upstream } = await start(t, {}, async (app, upstream) => {
      await app.register(httpProxy, { upstream, prefix, rewritePrefix: prefix, replyOptions: withCredential })
    })
    for (const url of ['/v1/files', '/v1/files/abc', '/v1/batches']) t.equal((await app.inject(url)).statusCode, 404, url)
    t.strictSame(upstream.seen, [])
  })
}
