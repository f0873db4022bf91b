import Fastify from 'fastify'
import t from 'tap'
import { errors } from '../../plugins/errors/index.js'
import { joinGateway } from '../../plugins/core/gateway.js'
import { paths, createRewriteUrl } from '../../plugins/paths/index.js'
import { ModelCall, modelCallOf } from '../../plugins/core/call/model-call.js'
import { listen, secret, watchSettled } from '../helpers/gateway.js'
import { startHost } from '../helpers/host.js'
import { startUpstream } from '../helpers/upstream.js'
import { askOnce } from '../helpers/wire.js'
import { build, chat, headers } from './seen-host.js'

for (const mountsFirst of [false, true]) {
  for (const adapted of [false, true]) {
    t.test(`beside ${adapted ? 'adapted' : 'untouched'} mounts, registered ${mountsFirst ? 'before' : 'after'} them`, async (t) => {
      const upstream = await startUpstream(t)
      const app = await startHost(t, upstream.url, { mountsFirst, adapted })
      const settled = watchSettled(app)
      const url = await listen(app)
      const cases: [from: string, to: string][] = [
        ['/v1/chat/completions', '/v1/chat/completions'],
        ['/v1/v1/chat/completions?a=%20b&&c', '/v1/chat/completions?a=%20b&&c'],
        ['/chat/completions/', '/v1/chat/completions'],
        ['//v1//v1beta//chat/completions?x', '/v1/chat/completions?x'],
        [`/v1/v1beta/models/vendor/m:generateContent?alt=json&key=${secret}`, '/v1beta/models/vendor/m:generateContent?alt=json'],
      ]
      for (const [from, to] of cases) {
        const body = from.includes('generateContent') ? '{"contents":[]}' : chat
        const injected = await app.inject({ method: 'POST', url: from.replace(/^\/+/, '/'), headers, payload: body })
        t.equal(injected.statusCode, 200, `${from} by inject: ${injected.body}`)
        const [first, second] = [await upstream.requests.next(), await askOnce(
          url, [`POST ${from} HTTP/1.1`, 'host: h', `authorization: Bearer ${secret}`, 'content-type: application/json'], body
        )]
        t.equal(second.status, 200, `${from} by socket`)
        for (const seen of [first, await upstream.requests.next()]) {
          t.equal(seen.url, to, from)
          t.equal(seen.body.toString(), body, 'the body survives the second pass')
        }
        t.match([await settled.next(), await settled.next()], [{ status: 200 }, { status: 200 }])
      }
      t.equal(settled.size, 0, 'each settled once')
    })
  }
}

t.test('host routes are left alone', async (t) => {
  const { app, seen } = await build(t)
  const url = '/own?key=mine&a=%20'
  await app.inject({ method: 'POST', url, payload: { a: 1 } })
  t.strictSame(seen.pop(), { url, originalUrl: url, query: { key: 'mine', a: ' ' }, llm: null, body: { a: 1 } })
  const preflight = { 'access-control-request-method': 'POST', origin: 'http://page.example' }
  t.equal((await app.inject({ method: 'OPTIONS', url: '/v1/v1/messages', headers: preflight })).statusCode, 200, 'CORS is the host\'s')
  t.equal((await app.inject({ method: 'OPTIONS', url: '/v1/v1/messages' })).statusCode, 405)
})

t.test('routes of the host that are taken for endpoints are told at the start', async (t) => {
  for (const [prefix, taken] of [
    ['', ['GET /messages', 'POST /messages', 'GET /models']],
    ['/llm', ['PUT', 'PATCH', 'DELETE'].map((method) => `${method} /llm/embeddings`)],
  ] as const) {
    const log: string[] = []
    const app = Fastify({ logger: { stream: { write: (line: string) => { log.push(line) } } } })
    t.teardown(() => app.close())
    app.route({ method: ['GET', 'POST'], url: '/messages', handler: async () => 'mine' })
    await app.register(paths, { prefix })
    app.get('/models', async () => 'mine')
    app.get('/v1/users', async () => 'mine')
    app.route({ method: ['DELETE', 'PATCH', 'PUT'], url: '/llm/embeddings', handler: async () => 'mine' })
    await app.ready()
    t.strictSame(log.map((line) => JSON.parse(line)).map(({ level, routes }) => ({ level, routes })), [{ level: 40, routes: taken }])
  }
})

t.test('root hooks of a host that come before the plugin see a request twice where its path was wrong, and never otherwise', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const before: string[] = []
  const after: string[] = []
  app.addHook('onRequest', async (request) => { before.push(String(request.raw.url)) })
  await app.register(paths)
  app.addHook('onRequest', async (request) => { after.push(String(request.raw.url)) })
  app.post('/v1/messages', async () => ({}))
  await app.inject({ method: 'POST', url: '/v1/messages?a' })
  await app.inject({ method: 'POST', url: '/messages?a' })
  t.strictSame(before, ['/v1/messages?a', '/messages?a', '/v1/messages?a'])
  t.strictSame(after, ['/v1/messages?a', '/v1/messages?a'])
})

t.test('a request that another plugin began before it was routed again settles once, with the request that served it', async (t) => {
  const app = Fastify({ genReqId: (raw) => String(raw.url) })
  t.teardown(() => app.close())
  const started: unknown[] = []
  const gateway = joinGateway(app)
  gateway.recorder = { ...gateway.recorder, started: (llm) => started.push(llm) }
  const served: [llm: ModelCall, id: string][] = []
  gateway.settlement.onSettled((llm, request) => served.push([llm, request.id]))
  await app.register(errors)
  await app.register(paths)
  app.post('/v1/messages', async (request) => { t.equal(modelCallOf(request), started[0]); return {} })
  t.equal((await app.inject({ method: 'POST', url: '/v1/v1/messages' })).statusCode, 200)
  t.equal(started.length, 1)
  t.strictSame(served.map(([llm, id]) => [llm === started[0], id, llm.status]), [[true, '/v1/messages', 200]])
})

t.test('a URL that the host puts in place of another is read again', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(paths)
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request
    if (raw.url?.startsWith('/team') !== true) {
      done()
      return
    }
    raw.url = raw.url.slice('/team'.length)
    reply.hijack()
    app.routing(raw, reply.raw)
  })
  app.post('/v1/messages', async (request) => ({ llm: request.llm?.endpoint ?? null, url: request.raw.url }))
  t.same((await app.inject({ method: 'POST', url: '/team/v1/v1/messages?a' })).json(), { llm: 'messages', url: '/v1/messages?a' })
})

t.test('a wrong option fails at start and names itself', async (t) => {
  const wrong: [options: object, said: string][] = [
    [{ prefix: 'llm' }, 'paths.prefix must be a path such as /llm'],
    [{ prefix: '/l l' }, 'paths.prefix must be a path such as /llm'],
    [{ prefix: 7 }, 'paths.prefix must be a path such as /llm'],
    [{ unknown: 'guess' }, 'paths.unknown must be leave or refuse'],
    [{ nonsense: 1 }, 'paths.nonsense is not known'],
    [{ constructor: 1 }, 'paths.constructor is not known'],
  ]
  for (const [options, said] of wrong) {
    const app = Fastify()
    await t.rejects(async () => await app.register(paths, options), { code: 'LLM_GATEWAY_OPTION', message: `option ${said}` })
    t.throws(() => createRewriteUrl(options), {
      code: 'LLM_GATEWAY_OPTION', message: `option ${said.replace('paths.', 'createRewriteUrl.')}`,
    })
    await app.close()
  }
})
