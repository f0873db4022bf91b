/** A query that nobody takes apart, as it would hold the loop, is refused at every door. */
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { createRewriteUrl, proxyOptions } from '../../plugins/index.js'
import { gatewayOptions, listen, secret } from '../helpers/gateway.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { askOnce } from '../helpers/wire.js'

const crowd = `?${'&%61'.repeat(300)}&key=${secret}`
const socket = ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==']
const doors: Record<string, ((app: FastifyInstance, url: string) => unknown) | null> = {
  'routes of ours': null,
  'a mount': (app, upstream) => app.register(httpProxy, { ...proxyOptions(), upstream, prefix: '/' }),
  'a mount that passes on what is unknown': (app, upstream) => (
    app.register(httpProxy, { ...proxyOptions({ unknown: 'forward' }), upstream, prefix: '/' })
  ),
  'a plain mount': (app, upstream) => app.register(httpProxy, { upstream, prefix: '/v1', rewritePrefix: '/v1', websocket: true }),
}

interface Site {
  readonly upstream: Upstream
  readonly log: string[]
  readonly ask: (method: string, path: string, ...headers: string[]) => Promise<number>
}

async function start (t: Test, door: string, rewrites: boolean): Promise<Site> {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const log: string[] = []
  const app: FastifyInstance = Fastify({
    logger: { stream: { write: (line: string) => log.push(line) } }, ...rewrites ? { rewriteUrl: createRewriteUrl() } : {},
  })
  t.teardown(() => app.close())
  const mount = doors[door]
  await app.register(llmGateway, gatewayOptions(upstream.url, { routes: mount === null }))
  app.get('/v1/users', async () => ({}))
  await mount?.(app, upstream.url)
  const url = await listen(app)
  return {
    upstream,
    log,
    ask: async (method, path, ...headers) => {
      const body = method === 'POST' ? '{"model":"m","messages":[]}' : undefined
      const type = body === undefined ? [] : ['content-type: application/json']
      return (await askOnce(url, [`${method} ${path} HTTP/1.1`, 'host: h', ...type, ...headers], body)).status
    },
  }
}

for (const door of Object.keys(doors)) {
  for (const rewrites of [false, true]) {
    t.test(`a crowded query is refused at ${door}${rewrites ? ', with rewriteUrl' : ''}`, async (t) => {
      const { upstream, log, ask } = await start(t, door, rewrites)
      const bearer = `authorization: Bearer ${secret}`
      for (const headers of [[], [bearer]]) {
        for (const path of ['/v1/chat/completions', '/v1/v1/messages', '/messages', '/v1beta/models/m:generateContent']) {
          t.equal(await ask('POST', path + crowd, ...headers), 400, path)
        }
        for (const path of ['/v1/models', '/v1/files', '/v1/users', '/v1/responses/r1']) {
          t.equal(await ask('GET', path + crowd, ...headers), 400, path)
          t.equal(await ask('GET', path + crowd, ...headers, ...socket), headers.length === 0 ? 401 : 426, path)
        }
      }
      for (const path of ['/v1/models', '/v1/files']) {
        await ask('OPTIONS', path + crowd, 'origin: https://a.example', 'access-control-request-method: GET')
      }
      t.strictSame(upstream.seen, [])
      if (rewrites) t.notMatch(log.join(''), secret)
      t.equal(await ask('GET', `/v1/models?${'&%61'.repeat(200)}`, bearer), 200)
      t.equal(await ask('GET', '/v1/users?key=a'), 200)
    })
  }
}

t.test('where nothing is taken for a model request a query may be what it likes', async (t) => {
  const { ask } = await start(t, 'a mount that passes on what is unknown', true)
  t.equal(await ask('GET', `/users${crowd}`), 200)
})

t.test('below an adapted mount of everything it goes unread', async (t) => {
  const { upstream, ask } = await start(t, 'a mount', false)
  t.equal(await ask('GET', `/users${crowd}`), 404)
  t.strictSame(upstream.seen, [])
})

t.test('a rewriteUrl alone sends it to no route of the host without its query', async (t) => {
  const app = Fastify({ rewriteUrl: createRewriteUrl() })
  t.teardown(() => app.close())
  app.get('/v1/users', async ({ url }) => ({ url }))
  t.equal((await app.inject(`/v1/users${crowd}`)).statusCode, 404)
  t.strictSame((await app.inject('/v1/users?a')).json(), { url: '/v1/users?a' })
})
