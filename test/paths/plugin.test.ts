import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:http2'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import { auth } from '../../plugins/auth/index.js'
import { errors } from '../../plugins/errors/index.js'
import { joinGateway } from '../../plugins/core/gateway.js'
import { paths, createRewriteUrl, type PathsOptions, type RewriteUrlOptions } from '../../plugins/paths/index.js'
import { ModelCall, modelCallOf } from '../../plugins/core/call/model-call.js'
import type { RawRequest } from '../../plugins/core/call/identify.js'
import { listen, secret, watchSettled } from '../helpers/gateway.js'
import { hostAuth, startHost } from '../helpers/host.js'
import { listenAtTwo } from '../helpers/two-addresses.js'
import { startUpstream } from '../helpers/upstream.js'
import { askOnce, Wire } from '../helpers/wire.js'

const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
const chat = '{"model":"m", "big":12345678901234567890,"messages":[{"role":"user","content":"h\\u00e9"}]}'

/** Everything that reached the app, as a host's route sees it. */
interface Seen {
  url: string | undefined
  originalUrl: string
  query: unknown
  llm: string | null
  body: unknown
}

/** A host with a catch-all of its own below `/v1` and `/v1beta`, in place of a mount. */
async function build (
  t: { teardown: (close: () => unknown) => unknown }, options: PathsOptions = {}, server = {}
): Promise<{ app: FastifyInstance, seen: Seen[] }> {
  const app = Fastify(server)
  t.teardown(() => app.close())
  const seen: Seen[] = []
  await app.register(paths, options)
  for (const url of ['/v1/*', '/v1beta/*', '/llm/v1/*', '/own']) {
    app.all(url, async (request) => {
      const { llm, raw, query, body, originalUrl } = request
      seen.push({
        url: raw.url, originalUrl, query: typeof query === 'object' ? query && { ...query } : query, llm: llm?.endpoint ?? null, body,
      })
      return { ok: true }
    })
  }
  return { app, seen }
}

/** The same host, with all that it logs. */
async function buildLogged (
  t: Parameters<typeof build>[0], options: RewriteUrlOptions = {}
): Promise<{ app: FastifyInstance, lines: string[] }> {
  const lines: string[] = []
  const logger = { level: 'trace', stream: { write: (line: string) => { lines.push(line) } } }
  return { ...await build(t, {}, { logger, rewriteUrl: createRewriteUrl(options) }), lines }
}

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

t.test('a credential in the query is in nothing that a host can see, and the rest of the query is', async (t) => {
  for (const server of [{}, { rewriteUrl: createRewriteUrl() }]) {
    const { app, seen } = await build(t, {}, server)
    for (const path of ['/v1beta/models/m:generateContent', '/v1/v1beta/models/m:generateContent']) {
      await app.inject({
        method: 'POST',
        url: `${path}?alt=sse&k%65y=canary&b=%20`,
        payload: '{"contents":[]}',
        headers: { 'content-type': 'application/json' },
      })
      const url = '/v1beta/models/m:generateContent?alt=sse&b=%20'
      t.strictSame(
        seen.pop(),
        { url, originalUrl: url, query: { alt: 'sse', b: ' ' }, llm: 'generate_content.generateContent', body: { contents: [] } },
        path
      )
    }
  }
})

t.test('nor is a credential in the query of an upgrade, for whichever hook of the host comes next', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const seen: unknown[] = []
  await app.register(paths)
  app.addHook('onRequest', async ({ url, originalUrl, query }) => { seen.push([url, originalUrl, { ...Object(query) }]) })
  await app.register(auth, hostAuth)
  app.addHook('onResponse', async ({ url, originalUrl, query }) => { seen.push([url, originalUrl, { ...Object(query) }]) })
  const upgrade = { connection: 'Upgrade', upgrade: 'websocket' }
  const { statusCode } = await app.inject({ url: `/v1beta/models?a=1&key=${secret}`, headers: upgrade })
  t.equal(statusCode, 426)
  t.strictSame(seen, [['/v1beta/models?a=1', '/v1beta/models?a=1', { a: '1' }], ['/v1beta/models?a=1', '/v1beta/models?a=1', { a: '1' }]])
})

t.test('a query parser of the host may give what it likes', async (t) => {
  for (const parsed of ['text', null]) {
    const { app, seen } = await build(t, {}, { routerOptions: { querystringParser: () => parsed } })
    await app.inject({
      method: 'POST', url: '/v1beta/models/m:generateContent?key=canary', payload: '{}', headers: { 'content-type': 'application/json' },
    })
    t.match(seen.pop(), { query: parsed, llm: 'generate_content.generateContent' })
  }
})

t.test('rewriteUrl keeps the key out of the host\'s own request log', async (t) => {
  const { app, lines } = await buildLogged(t)
  const urls = [
    '/v1/models/m:generateContent?key=canary', '/v1beta/unknown?a=1&key=canary', '/v1/chat/completions/chat/completions?key=canary',
    '/v1/%zz?key=canary',
    '/v1/models/a%2e%2e:generateContent?key=canary',
  ]
  for (const url of urls) {
    const { body } = await app.inject({ method: 'POST', url, payload: '{}' })
    t.notMatch(body, /canary/, url)
  }
  t.ok(lines.length >= 2 * urls.length)
  t.notMatch(lines.join(''), /canary/)
})

t.test('nor does a rewriteUrl that leaves unknown paths bring that of any other there', async (t) => {
  const { app, lines } = await buildLogged(t, { unknown: 'leave' })
  for (const [method, path, status] of [
    ['GET', '/v1/chat/completions', 405], ['POST', '/v1/chat/completions/chat/completions', 404], ['POST', '/v1/messages%zz', 400],
    ['POST', '/v1/messages/..%2f', 400],
  ] as const) {
    const { statusCode, body } = await app.inject({ method, url: `${path}?key=canary` })
    t.equal(statusCode, status, path)
    t.notMatch(body, /canary/, path)
  }
  t.notMatch(lines.join(''), /canary/)
})

t.test('nor does a browser that asks beforehand, by the URL with the key in it, bring it there', async (t) => {
  const { app, lines } = await buildLogged(t)
  const urls = [
    '/v1beta/models/m:generateContent?alt=sse&key=canary', '/v1beta/models?key=canary', '/v1beta/unknown?key=canary',
    '/models/m:streamGenerateContent?key=canary',
  ]
  const asks = { origin: 'https://page.example', 'access-control-request-method': 'POST' }
  for (const url of urls) await app.inject({ method: 'OPTIONS', url, headers: asks })
  t.ok(lines.length >= 2 * urls.length)
  t.notMatch(lines.join(''), /canary/)
  t.match(lines.join(''), /m:generateContent\?alt=sse"/, 'the rest of its query stays')
  await app.inject({ method: 'OPTIONS', url: '/host/own?key=its', headers: asks })
  t.match(lines.join(''), /\/host\/own\?key=its/, 'a path of the host is its own')
})

t.test('over HTTP/2 the same', async (t) => {
  for (const rewriteUrl of [createRewriteUrl(), undefined]) {
    const app = Fastify({ http2: true, ...(rewriteUrl && { rewriteUrl }) })
    t.teardown(() => app.close())
    await app.register(paths)
    app.post('/v1/messages', async ({ url, llm }) => ({ url, protocol: llm?.protocol }))
    const session = connect(await app.listen({ host: '127.0.0.1', port: 0 }))
    const stream = session.request({ ':method': 'POST', ':path': '/v1//v1/messages?a=1' })
    t.strictSame(JSON.parse((await stream.setEncoding('utf8').toArray()).join('')), { url: '/v1/messages?a=1', protocol: 'messages' })
    session.close()
  }
})

t.test('what the router itself would answer in its own words is answered in the caller\'s protocol', async (t) => {
  const { app } = await build(t, {}, { rewriteUrl: createRewriteUrl() })
  const url = await listen(app)
  for (const path of ['/v1/chat/completions%zz', '/v1/messages%c0%af', '/v1/%zz', '/%76%31/unknown%zz']) {
    const reply = await askOnce(url, [`POST ${path}?key=canary HTTP/1.1`, 'host: h', 'content-length: 0'])
    t.equal(reply.status, 400, path)
    t.match(JSON.parse(reply.body), { error: { message: /could be read in two ways/ } }, path)
  }
  t.match(
    JSON.parse((await askOnce(url, ['POST /other%zz HTTP/1.1', 'host: h', 'content-length: 0'])).body),
    { code: 'FST_ERR_BAD_URL' },
    'none of ours'
  )
})

t.test('a rewriteUrl of the host\'s own stands alone, and before or behind ours', async (t) => {
  const renamed = (url = ''): string => url.replace(/^\/api\/ai\//, '/v1/')
  const repair = createRewriteUrl()
  const ways: Record<string, (raw: RawRequest) => string> = {
    alone: (raw) => renamed(raw.url),
    before: (raw) => {
      raw.url = renamed(raw.url)
      return repair(raw)
    },
    behind: (raw) => renamed(repair(raw)),
  }
  for (const [way, rewriteUrl] of Object.entries(ways)) {
    const { app, seen } = await build(t, {}, { rewriteUrl })
    for (const url of ['/api/ai/messages', '/api/ai/v1/messages', '/v1/v1/messages', '/messages']) {
      await app.inject({ method: 'POST', url })
      t.match(seen.pop(), { llm: 'messages', url: '/v1/messages' }, `${way}: ${url}`)
    }
  }
})

t.test('a rewriteUrl that knows less than the app decides nothing', async (t) => {
  const { app, seen } = await build(t, { prefix: '/llm' }, { rewriteUrl: createRewriteUrl() })
  await app.inject({ method: 'POST', url: '/llm/v1/v1/messages' })
  t.match(seen.pop(), { llm: 'messages', url: '/llm/v1/messages' })
  const lax = await build(t, {}, { rewriteUrl: createRewriteUrl(), routerOptions: { caseSensitive: false } })
  t.equal((await lax.app.inject({ method: 'POST', url: '/V1/messages' })).statusCode, 400)
  t.equal((await lax.app.inject({ method: 'POST', url: '/v1/Messages' })).statusCode, 400)
  t.equal((await lax.app.inject({ method: 'GET', url: '/v1/Users' })).statusCode, 200)
  t.strictSame(lax.seen.map(({ url, llm }) => [url, llm]), [['/v1/Users', null]])
})

t.test('a key in the query of a path that is nobody\'s tells whose terms its 404 is in, with a rewriteUrl and without', async (t) => {
  for (const server of [{}, { rewriteUrl: createRewriteUrl() }]) {
    const { app } = await build(t, {}, server)
    const reply = await app.inject({ method: 'POST', url: '/v1alpha/nothing?key=canary' })
    t.match([reply.statusCode, reply.json()], [404, { error: { code: 404, status: 'NOT_FOUND' } }])
  }
})

t.test('below a prefix, in any spelling that a lenient router takes for it', async (t) => {
  const strict = await build(t, { prefix: '/llm/' })
  await strict.app.inject({ method: 'POST', url: '/llm//messages/?a' })
  t.match(strict.seen.pop(), { url: '/llm/v1/messages?a', llm: 'messages' })
  await strict.app.inject({ method: 'POST', url: '/v1/messages' })
  t.match(strict.seen.pop(), { url: '/v1/messages', llm: null })
  const lax = await build(t, { prefix: '/LLM' }, { routerOptions: { caseSensitive: false } })
  for (const url of ['/llm/v1/messages', '/Llm/v1/messages', '/%6c%6c%6d/v1/messages']) {
    t.match([(await lax.app.inject({ method: 'POST', url })).statusCode, lax.seen.length], [400, 0], url)
  }
})

t.test('unknown paths below a version: the host\'s routes stay whole, the rest is refused or left', async (t) => {
  for (const unknown of ['refuse', 'leave'] as const) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(paths, { unknown })
    app.get(
      '/v1/geocode', async (request) => ({ url: request.raw.url, originalUrl: request.originalUrl, query: request.query, llm: request.llm })
    )
    app.get('/v1/files/:name', async (request) => request.params)
    const url = '/v1/geocode?key=maps&a=1'
    t.strictSame((await app.inject(url)).json(), { url, originalUrl: url, query: { key: 'maps', a: '1' }, llm: null })
    t.strictSame((await app.inject('/v1/files/a%20b%2e%2e.txt')).json(), { name: 'a b...txt' })
    const lost = await app.inject({ method: 'POST', url: '/v1/nothing?key=canary' })
    t.equal(lost.statusCode, 404)
    if (unknown === 'refuse') {
      t.match(lost.json(), {
        error: { code: 404, status: 'NOT_FOUND', message: /POST \/v1\/nothing\. Use the base URL/ },
      })
    } else t.strictSame(Object.keys(lost.json()), ['message', 'error', 'statusCode'])
  }
  const left = Fastify({ rewriteUrl: createRewriteUrl({ unknown: 'leave' }) })
  t.teardown(() => left.close())
  await left.register(paths)
  left.get('/v1/geocode', async (request) => ({ url: request.raw.url, originalUrl: request.originalUrl }))
  t.strictSame((await left.inject('/v1/geocode?key=maps')).json(), { url: '/v1/geocode?key=maps', originalUrl: '/v1/geocode?key=maps' })
  t.strictSame((await left.inject('/else?key=maps')).statusCode, 404)
})

t.test('a doubled path and a wrong method are refused, with what would be right', async (t) => {
  const { app, seen } = await build(t)
  const doubled = await app.inject({ method: 'POST', url: '/v1/chat/completions/chat/completions?key=canary' })
  t.match([doubled.statusCode, doubled.json()], [404, { error: { code: 'doubled_path', message: /should be http:\/\/localhost:80\/v1,/ } }])
  const method = await app.inject({ method: 'GET', url: '/v1/chat/completions' })
  t.match([method.statusCode, method.json(), method.headers], [
    405, { error: { code: 'method_not_allowed' } }, { allow: 'POST', 'x-should-retry': 'false' },
  ])
  const answers = await app.inject({ method: 'PUT', url: '/v1/responses/resp_1' })
  t.equal(answers.headers.allow, 'GET, HEAD, DELETE')
  t.equal(seen.length, 0)
})

t.test('an unknown action is told with those that there are', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(paths)
  const reply = await app.inject({ method: 'POST', url: '/v1beta/models/m:dream' })
  t.match([reply.statusCode, reply.json()], [404, { error: { message: /joined by a colon: .*\bgenerateContent, / } }])
})

t.test('HEAD without a key at the root or at a version is answered, unless the host has it', async (t) => {
  const { app } = await build(t)
  for (const url of ['/', '/v1', '/v1/', '/v1beta']) t.strictSame([(await app.inject({ method: 'HEAD', url })).statusCode, url], [200, url])
  for (const url of ['/x', '/v1x']) t.strictSame([(await app.inject({ method: 'HEAD', url })).statusCode, url], [404, url])
  t.equal((await app.inject({ method: 'HEAD', url: '/v1/chat/completions' })).statusCode, 405)
  const below = await build(t, { prefix: '/llm' })
  for (const url of ['/', '/llm', '/llm/', '/llm/v1', '/llm/v1beta/']) {
    t.strictSame([(await below.app.inject({ method: 'HEAD', url })).statusCode, url], [200, url])
  }
  for (const url of ['/llmv1', '/llm/x']) t.strictSame([(await below.app.inject({ method: 'HEAD', url })).statusCode, url], [404, url])
  const own = await build(t)
  own.app.head('/', async (_, reply) => reply.code(204).send())
  t.equal((await own.app.inject({ method: 'HEAD', url: '/' })).statusCode, 204)
})

t.test('a WebSocket upgrade is answered 426 at once and the connection goes on', async (t) => {
  const { app, seen } = await build(t)
  const url = await listen(app)
  const wire = new Wire(url)
  t.teardown(() => wire.destroy())
  const upgrade = [
    'host: h', 'connection: keep-alive, Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13',
    'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
  ]
  for (const path of ['/v1/responses', '/responses', '/v1/v1/responses', '/v1/responses/resp_1']) {
    const reply = await wire.ask([`GET ${path} HTTP/1.1`, ...upgrade])
    t.match([reply.status, reply.headers.upgrade, JSON.parse(reply.body)], [426, 'HTTP/1.1', { error: { code: 'upgrade_required' } }], path)
  }
  t.equal(seen.length, 0)
  const offered = await wire.ask(
    [
      'POST /v1/responses HTTP/1.1', 'host: h', 'connection: Upgrade, HTTP2-Settings', 'upgrade: h2c', 'http2-settings: AA',
      'content-type: application/json',
    ],
    '{}'
  )
  t.equal(offered.status, 200, 'an offer of h2c is ignored')
  const host = await wire.ask(['GET /v1/ws HTTP/1.1', ...upgrade])
  t.equal(host.status, 200, 'a path that is the host\'s')
  t.equal((await askOnce(url, ['GET /v1beta HTTP/1.1', ...upgrade])).status, 426, 'a path that is nobody\'s')
  t.equal(
    (await wire.ask(['GET /v1/responses/resp_1 HTTP/1.1', 'host: h', 'upgrade: websocket'])).status, 200, 'no upgrade without Connection'
  )
})

t.test('an upgrade on a mount that serves WebSockets does not get past the guard', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startHost(t, upstream.url, { mounts: [] })
  const { default: httpProxy } = await import('@fastify/http-proxy')
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', websocket: true })
  const url = await listen(app)
  let upgraded = 0
  upstream.server.on('upgrade', (_, socket) => { upgraded += 1; socket.destroy() })
  const upgrade = [
    'host: h', 'connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
  ]
  for (const path of ['/v1/responses', '/v1/realtime']) {
    t.equal((await askOnce(url, [`GET ${path} HTTP/1.1`, ...upgrade])).status, 401)
    t.equal((await askOnce(url, [`GET ${path} HTTP/1.1`, ...upgrade, `authorization: Bearer ${secret}`])).status, 426)
  }
  t.equal(upgraded, 0)
})

t.test('two hosts are one too many, and an empty one is none', async (t) => {
  const { app, seen } = await build(t)
  const url = await listen(app)
  const reply = await askOnce(url, ['POST /v1/messages HTTP/1.1', 'host: a', 'Host: b', 'content-type: application/json'], '{}')
  t.match([reply.status, JSON.parse(reply.body)], [400, { type: 'error', error: { details: { error_code: 'bad_request' } } }])
  t.equal((await askOnce(url, ['POST /v1/messages HTTP/1.1', 'host:', 'content-type: application/json'], '{}')).status, 400)
  t.equal(seen.length, 0)
  t.equal(
    (await askOnce(url, ['POST /v1/messages HTTP/1.1', 'host: a', 'x-host: b', 'hos1: c', 'content-type: application/json'], '{}')).status,
    200
  )
})

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

t.test('a path of ours that the router cannot decode is refused natively on a socket, without a word of it', async (t) => {
  for (const server of [{}, { rewriteUrl: createRewriteUrl() }]) {
    const { app, seen } = await build(t, {}, server)
    const given: string[] = []
    app.addHook('onSend', async ({ originalUrl }) => { given.push(originalUrl) })
    const url = await listen(app)
    for (const path of [
      '/v1/%zz?key=c4nary', '/v1beta/models/%c3%28:generateContent?key=c4nary', '/v1/v1/messages/%?key=c4nary',
      '/v1/%2e/messages?key=c4nary',
    ]) {
      const reply = await askOnce(url, [`POST ${path} HTTP/1.1`, 'host: h'], '{}')
      t.match([reply.status, JSON.parse(reply.body)], [400, { error: { message: /^The URL path holds/ } }], path)
      t.notMatch(reply.body, /c4nary|zz/)
    }
    t.equal(given.length, 4)
    t.notMatch(given.join(' '), /c4nary/)
    t.match((await askOnce(url, ['GET /own/%zz HTTP/1.1', 'host: h'])).body, 'FST_ERR_BAD_URL', 'what is not ours stays the host\'s')
    t.equal((await askOnce(url, ['GET /own?a=%zz HTTP/1.1', 'host: h'])).status, 200)
    t.equal(
      (await askOnce(url, ['POST /v1/models/a%2Fb:generateContent HTTP/1.1', 'host: h', 'content-type: application/json'], '{}')).status,
      200
    )
    t.equal(seen.length, 2)
  }
})

t.test('a body in a coding that servers disagree on is refused', async (t) => {
  const { app, seen } = await build(t)
  const url = await listen(app)
  for (const coding of ['gzip, chunked', 'identity, chunked']) {
    const wire = new Wire(url)
    wire.send([
      'POST /v1/messages HTTP/1.1', 'host: a', 'content-type: application/json', `transfer-encoding: ${coding}`, '', '2\r\n{}\r\n0\r\n\r\n',
    ].join('\r\n'))
    t.equal((await wire.reply()).status, 400, coding)
    wire.destroy()
  }
  t.equal(seen.length, 0)
})

t.test('nor is it told at the second address of a name that has two', async (t) => {
  const { app, seen } = await build(t)
  const addresses = await listenAtTwo(t, app)
  t.strictSame(addresses.map(({ address }) => address).sort(), ['127.0.0.1', '127.0.0.2'])
  for (const { address, port } of addresses) {
    const reply = async (path: string): Promise<{ status: number, body: string }> => {
      const [message]: IncomingMessage[] = await once(get({ host: address, port, path }), 'response')
      return { status: message?.statusCode ?? 0, body: (await message?.setEncoding('utf8').toArray() ?? []).join('') }
    }
    const refused = await reply('/v1/%zz?key=c4nary')
    t.equal(refused.status, 400)
    t.match(refused.body, /could be read in two ways/, address)
    t.notMatch(refused.body, /c4nary/)
    t.match((await reply('/own/%zz')).body, 'FST_ERR_BAD_URL', 'what is not ours stays the host\'s')
    t.equal((await reply('/own')).status, 200)
  }
  t.equal(seen.length, 2)
})
