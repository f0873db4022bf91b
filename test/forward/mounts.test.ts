import httpProxy from '@fastify/http-proxy'
import replyFrom from '@fastify/reply-from'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import t from 'tap'
import { modelCallOf } from '../../plugins/core/call/model-call.js'
import llmGateway, { paths, proxyOptions } from '../../plugins/index.js'
import {
  call, everyProtocol, gatewayOptions, listen, providerSecret, read, secret, watchSettled, type Gateway,
} from '../helpers/gateway.js'
import { replyFixture, sha256, startUpstream } from '../helpers/upstream.js'

const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
const chat = '{"model":"m", "big":12345678901234567890, "one": 1.0,"messages":[{"role":"user","content":"hi"}]}'
const hostSecret = 'host-provider-secret'

interface Mount {
  readonly name: string
  readonly options: () => Record<string, unknown>
}

const mounts: readonly Mount[] = [
  { name: 'a mount that spreads proxyOptions', options: () => ({ ...proxyOptions() }) },
  { name: 'a mount whose options nobody touched', options: () => ({}) },
  { name: 'a mount that parses bodies', options: () => ({ proxyPayloads: false }) },
  { name: 'a mount with a preValidation hook', options: () => ({ preValidation: async () => {} }) },
]

async function startHost (
  t: { teardown: (close: () => unknown) => unknown }, upstreamUrl: string, mount: Mount, first: 'mount' | 'gateway' = 'mount'
): Promise<Gateway> {
  const app = Fastify()
  await app.register(async (scope) => scope.get('/older', async (request) => ({ llm: request.llm })))
  const register = async (): Promise<void> => {
    for (const prefix of ['/v1', '/v1beta']) await app.register(httpProxy, hostMount(upstreamUrl, prefix, mount))
  }
  if (first === 'mount') await register()
  await app.register(llmGateway, {
    groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
  })
  if (first === 'gateway') await register()
  app.get('/health', async (request) => ({ llm: request.llm }))
  t.teardown(() => app.close())
  return { app, settled: watchSettled(app) }
}

function hostMount (upstream: string, prefix: string, mount: Mount): { upstream: string } {
  const replyOptions = {
    rewriteRequestHeaders: (_: unknown, headers: Record<string, unknown>) => ({
      ...headers, authorization: `Bearer ${hostSecret}`, 'x-host': 'yes',
    }),
    rewriteHeaders: (headers: Record<string, unknown>) => ({ ...headers, 'x-from-host': 'yes' }),
  }
  const options = { upstream, prefix, rewritePrefix: prefix, replyOptions, ...mount.options() }
  return options
}

for (const mount of mounts) {
  for (const first of ['mount', 'gateway'] as const) {
    t.test(`${mount.name}, registered ${first === 'mount' ? 'before' : 'after'} the gateway`, async (t) => {
      const upstream = await startUpstream(t)
      const { app, settled } = await startHost(t, upstream.url, mount, first)

      const reply = await app.inject({
        method: 'POST', url: '/v1/v1/chat/completions?a=%20', headers: { ...headers, 'x-api-key': 'more', cookie: 'k=v' }, payload: chat,
      })
      t.equal(reply.statusCode, 200, reply.body)
      t.equal(sha256(reply.rawPayload), sha256(replyFixture('chat_completions.json')))
      t.equal(reply.headers['x-from-host'], 'yes')
      const seen = await upstream.requests.next()
      t.equal(seen.sha256, sha256(chat), 'bytes as received')
      t.equal(seen.url.replace('%20', '+').replace('a=+', 'a='), '/v1/chat/completions?a=')
      t.match(seen.headers, { authorization: `Bearer ${hostSecret}`, 'x-host': 'yes', 'content-type': 'application/json' })
      t.notOk(seen.rawHeaders.join().includes(secret))
      t.equal(seen.headers['x-api-key'], undefined)
      t.equal(seen.headers.cookie, undefined)
      t.match(await settled.next(), { outcome: 'ok', status: 200 })

      const mixed = await app.inject({
        method: 'POST',
        url: `/v1/v1beta/models/vendor/m:generateContent?key=${secret}`,
        headers: { 'content-type': 'application/json' },
        payload: '{"contents":[{"parts":[{"text":"x"}]}]}',
      })
      t.equal(mixed.statusCode, 200, mixed.body)
      t.equal((await upstream.requests.next()).url, '/v1beta/models/vendor/m:generateContent')

      const count = upstream.seen.length
      const wrong = await app.inject({
        method: 'POST', url: '/v1/chat/completions', headers: { ...headers, authorization: 'Bearer wrong' }, payload: chat,
      })
      t.match([wrong.statusCode, wrong.json()], [401, { error: { code: 'invalid_api_key' } }])
      const invalid = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: '{"model":"m"}' })
      t.match([invalid.statusCode, invalid.json()], [400, { error: { param: 'messages' } }])
      t.equal(upstream.seen.length, count, 'nothing refused reaches the upstream')

      upstream.queue({ cutAt: 'headers' })
      const reset = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
      t.match([reset.statusCode, reset.json()], [502, { error: { code: 'upstream_reset' } }])
      t.same((await app.inject('/health')).json(), { llm: null })
      t.same((await app.inject('/older')).json(), { llm: null }, 'a context that is older than the gateway')
    })
  }

  t.test(`${mount.name}: a stream passes unchanged and is cancelled when the caller leaves`, async (t) => {
    const upstream = await startUpstream(t)
    const { app } = await startHost(t, upstream.url, mount)
    const url = await listen(app)
    const body = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'
    const { bytes } = await read(await call(`${url}/v1/chat/completions`, { body }).reply)
    t.equal(sha256(bytes), sha256(replyFixture('chat_completions.include_usage.sse')))
    await upstream.requests.next()
    upstream.queue({ fixture: 'chat_completions.include_usage.sse', stallAt: 300 })
    const { request, reply } = call(`${url}/v1/chat/completions`, { body })
    const seen = await upstream.requests.next()
    ;(await reply).once('data', () => request.destroy())
    t.equal(await seen.aborted, true)
  })
}

for (const mount of mounts) {
  t.test(`${mount.name}: no version is doubled where the mount, or its upstream's base address, has one of its own`, async (t) => {
    const upstream = await startUpstream(t)
    upstream.respond = () => ({ body: { ok: true } })
    const places = [
      { prefix: '/openai', options: { upstream: upstream.url, prefix: '/openai', rewritePrefix: '/v1' }, expected: '/v1/chat/completions' },
      { prefix: '/openai', options: { upstream: `${upstream.url}/v1`, prefix: '/openai' }, expected: '/v1/chat/completions' },
      {
        prefix: '/openai',
        options: { upstream: upstream.url, prefix: '/openai', rewritePrefix: '/v1/account/openai' },
        expected: '/v1/account/openai/v1/chat/completions',
      },
      { prefix: '', options: { upstream: `${upstream.url}/v1` }, expected: '/v1/chat/completions' },
      { prefix: '', options: { upstream: `${upstream.url}/v1`, prefix: '/v1' }, expected: '/v1/chat/completions' },
    ]
    for (const { prefix, options, expected } of places) {
      const app = Fastify()
      t.teardown(() => app.close())
      await app.register(llmGateway, {
        prefix, groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
      })
      await app.register(httpProxy, { ...options, ...mount.options() })
      for (const version of ['/v1', '', '/v1/v1']) {
        const reply = await app.inject({ method: 'POST', url: `${prefix}${version}/chat/completions?a=b`, headers, payload: chat })
        t.equal(reply.statusCode, 200, reply.body)
        t.equal((await upstream.requests.next()).url, `${expected}?a=b`, `${version}/chat/completions with ${JSON.stringify(options)}`)
      }
    }
  })
}

t.test('a route of the host that sends a model request on by itself does not double a version either', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(paths)
  await app.register(replyFrom, { base: upstream.url })
  app.post('/v1/embeddings', (request, reply) => reply.from(`/v1${request.url}`))
  app.post('/v1/messages', (_request, reply) => reply.from())
  for (const [url, expected] of [['/v1/v1/embeddings', '/v1/embeddings'], ['/messages', '/v1/messages']]) {
    await app.inject({ method: 'POST', url: String(url), payload: { input: 'x' } })
    t.equal((await upstream.requests.next()).url, expected)
  }
})

t.test('a mount older than the gateway, below which nobody is asked for a key, passes nothing', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/openai', ...proxyOptions() })
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/', ...proxyOptions() })
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  const open = await app.inject({
    method: 'POST', url: '/openai/v1/chat/completions', payload: chat, headers: { 'content-type': 'application/json' },
  })
  t.match([open.statusCode, open.json().code], [500, 'LLM_GATEWAY_OPTION'])
  t.equal(upstream.seen.length, 0)
  for (const url of ['/anything', '/anything', '/']) {
    t.equal((await app.inject(url)).statusCode, 404, 'the mount has a credential for everything below it')
  }
  t.equal(upstream.seen.length, 0)
})

t.test('without auth a mount passes what is none of the gateway\'s business', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: { ok: true } })
  const app = await startSeam(t, upstream.url, {})
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/other', ...proxyOptions() })
  await app.register(paths)
  t.equal((await app.inject('/other/anything')).statusCode, 200)
})

t.test('a mount that relies on a gateway which is not there fails the start', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startSeam(t, upstream.url, {})
  await t.rejects(async () => await app.ready(), { code: 'LLM_GATEWAY_OPTION' })
})

async function startSeam (
  t: { teardown: (close: () => unknown) => unknown }, upstreamUrl: string, replyOptions: object,
  options: Parameters<typeof proxyOptions>[0] = {}
): Promise<FastifyInstance> {
  const app = Fastify()
  const mount = { upstream: upstreamUrl, prefix: '/v1', rewritePrefix: '/v1', replyOptions, ...proxyOptions(options) }
  await app.register(httpProxy, mount)
  t.teardown(() => app.close())
  return app
}

t.test('a path under the mount that no endpoint has is refused, or forwarded where the host says so', async (t) => {
  const upstream = await startUpstream(t)
  for (const [options, status] of [[{}, 404], [{ unknown: 'forward' as const }, 200]] as const) {
    const app = await startSeam(t, upstream.url, {}, options)
    await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
    upstream.respond = () => ({ body: { ok: true } })
    t.equal((await app.inject({ method: 'GET', url: '/v1/files', headers })).statusCode, status)
    for (const action of ['batchGenerateContent', 'predict', 'predictLongRunning']) {
      t.equal((await app.inject({ method: 'POST', url: `/v1/models/m:${action}`, headers, payload: {} })).statusCode, status, action)
    }
    for (const path of ['models/m:generatecontent', 'tunedmodels/m:generatecontent', 'tunedModels/m:generateContent:predict']) {
      const misspelled = await app.inject({ method: 'POST', url: `/v1/${path}`, headers, payload: {} })
      t.match([misspelled.statusCode, misspelled.json()], [404, { error: { message: /^Unknown action/ } }], path)
    }
    t.equal((await app.inject({ method: 'POST', url: '/v1/chat%2fcompletions', headers, payload: chat })).statusCode, 400)
  }
})

t.test('a model request does not wait for the connections of what is left alone', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startSeam(t, upstream.url, {}, { unknown: 'forward', connections: 1 })
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  let release = (): void => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  upstream.queue({ body: { ok: true }, before: async () => await held })
  const other = app.inject({ method: 'GET', url: '/v1/files', headers })
  await upstream.requests.next()
  t.equal((await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })).statusCode, 200)
  release()
  t.equal((await other).statusCode, 200)
})

t.test('an app closes while an upstream is silent to a request left alone whose caller has gone', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', ...proxyOptions({ unknown: 'forward' }) })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  upstream.queue({ stallAt: 'headers' })
  const caller = new AbortController()
  const asked = fetch(`${url}/v1/files`, { headers, signal: caller.signal })
  await upstream.arrivals.next()
  caller.abort()
  await t.rejects(asked)
  await app.close()
})

t.test('a host that reads replies itself still gets a stream, and a group\'s own upstream wins over the mount\'s', async (t) => {
  const mounted = await startUpstream(t)
  const own = await startUpstream(t)
  const app = await startSeam(t, mounted.url, {
    onResponse: (_: unknown, reply: { send: (body: unknown) => void }, res: { stream: { on?: unknown } }) => {
      t.type(res.stream.on, 'function')
      reply.send(res.stream)
    },
  })
  await app.register(llmGateway, {
    ...gatewayOptions(own.url),
    groups: { all: { protocols: everyProtocol, upstream: 'main' }, mounts: { protocols: everyProtocol } },
    keys: [{ id: 'a', group: 'all', secret }, { id: 'b', group: 'mounts', secret: 'sk-mount' }],
    routes: false,
  })
  const first = await app.inject({ method: 'POST', url: '/v1/chat/completions?x=1', headers, payload: chat })
  t.equal(first.statusCode, 200)
  const seen = await own.requests.next()
  t.match([seen.url, seen.headers.host, seen.headers.authorization], [
    '/v1/chat/completions?x=1', `127.0.0.1:${own.port}`, 'Bearer provider-secret-9876543210',
  ])
  const second = await app.inject({
    method: 'POST', url: '/v1/chat/completions', headers: { ...headers, authorization: 'Bearer sk-mount' }, payload: chat,
  })
  t.equal(second.statusCode, 200)
  const other = await mounted.requests.next()
  t.equal(other.headers.authorization, undefined)
})

t.test('a mount with a transport of its own sends nothing of a group that has an upstream, and that is told', async (t) => {
  const mounted = await startUpstream(t)
  const own = await startUpstream(t)
  const aboutMessage = {
    'content-type': 'application/json; charset=utf-8',
    accept: 'application/json',
    'accept-encoding': 'gzip',
    'accept-language': 'de',
    'user-agent': 'host/1',
  }
  const replyOptions = { rewriteRequestHeaders: (_: unknown, given: object) => ({ ...given, ...aboutMessage, 'x-host': 'yes' }) }
  for (const transport of [{}, { undici: { connections: 2 } }, { http: {} }]) {
    const lines: string[] = []
    const app = Fastify({ logger: { level: 'error', stream: { write: (line: string) => { lines.push(line) } } } })
    t.teardown(() => app.close())
    const options: { upstream: string } = Object.assign(
      { upstream: mounted.url, prefix: '/v1', rewritePrefix: '/v1', replyOptions }, proxyOptions(), transport
    )
    await app.register(httpProxy, options)
    await app.register(llmGateway, {
      ...gatewayOptions(own.url), groups: { all: { protocols: everyProtocol, upstream: 'main' } }, routes: false,
    })
    const isOurs = Object.keys(transport).length === 0
    const asked = { ...headers, 'openai-organization': 'of-the-caller' }
    for (const status of isOurs ? [200, 200] : [500]) {
      t.equal((await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: asked, payload: chat })).statusCode, status)
    }
    t.strictSame(lines.map((line) => /undici, http or http2 of its own/.test(line)), isOurs ? [] : [true])
    // What was sent before would be there by then.
    await fetch(`${mounted.url}/after`)
    await fetch(`${mounted.url}/after`)
  }
  for (const { headers: seen } of own.seen) {
    t.strictSame([seen.authorization, seen['x-host']], [`Bearer ${providerSecret}`, undefined])
    t.match(seen, { ...aboutMessage, 'openai-organization': 'of-the-caller' })
  }
  t.equal(own.seen.length, 2)
  t.strictSame(mounted.seen.filter(({ url }) => url !== '/after').map(({ url }) => url), [])
})

t.test('a host that answers for an upstream that is away is heard', async (t) => {
  const gone = 'http://127.0.0.1:1'
  for (const [answer, expected] of [
    [(reply: FastifyReply) => reply.code(503).send({ host: 'away' }), [503, { host: 'away' }]],
    [(reply: FastifyReply, { error }: { error: Error }) => reply.send(error), [502, { error: { code: 'upstream_unreachable' } }]],
  ] as const) {
    const app = await startSeam(t, gone, { onError: answer })
    await app.register(llmGateway, {
      groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'a', group: 'all', secret }], routes: false,
    })
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
    t.match([reply.statusCode, reply.json()], expected)
  }
})

t.test('a mount that adds nothing to requests keeps its say in the headers of replies', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startSeam(t, upstream.url, { rewriteHeaders: (kept: Record<string, unknown>) => ({ ...kept, 'x-from-host': 'yes' }) })
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, upstream: 'main' } }, routes: false,
  })
  // The first shows that the mount reaches its transport; the second goes past reply-from.
  for (const time of ['first', 'second']) {
    const reply = await app.inject({
      method: 'POST',
      url: '/v1/chat/completions',
      headers: { ...headers, connection: 'x-listed', 'x-listed': 'no', cookie: 'a=b' },
      payload: chat,
    })
    t.match([reply.statusCode, reply.headers['x-from-host']], [200, 'yes'], time)
    t.equal(sha256(reply.rawPayload), sha256(replyFixture('chat_completions.json')))
    const seen = await upstream.requests.next()
    t.equal(seen.sha256, sha256(chat), 'bytes as received')
    t.match([seen.headers['x-listed'], seen.headers.cookie, seen.headers.authorization], [
      undefined, undefined, 'Bearer provider-secret-9876543210',
    ])
  }
})

t.test('a mount may change the headers of replies in place', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startSeam(t, upstream.url, { rewriteHeaders: (kept: Record<string, unknown>) => { kept['x-from-host'] = 'yes' } })
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, upstream: 'main' } }, routes: false,
  })
  for (const time of ['first', 'second']) {
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
    t.match([reply.statusCode, reply.headers['x-from-host']], [200, 'yes'], time)
  }
})

t.test('a mount makes no destination that nobody uses, and each hook on its routes still has a say', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url),
    groups: { all: { protocols: everyProtocol, upstream: 'main' }, mounts: { protocols: everyProtocol } },
    keys: [{ id: 'caller', group: 'all', secret }, { id: 'other', group: 'mounts', secret: 'secret-of-the-mounts-group' }],
    routes: false,
  })
  // As @fastify/rate-limit adds its hook: behind the mount's own.
  app.addHook('onRoute', (route) => {
    route.preHandler = [route.preHandler ?? [], async (request: FastifyRequest, reply: FastifyReply) => {
      if (request.headers['x-refused'] === 'yes') await reply.code(429).send('too many')
      // Read by http-proxy alone, for its destination.
      Object.defineProperty(request, 'params', { get: () => { destinations += 1; return {} } })
    }].flat()
  })
  let destinations = 0
  const mount = {
    upstream: upstream.url,
    prefix: '/v1',
    rewritePrefix: '/v1',
    replyOptions: { rewriteHeaders: (kept: Record<string, unknown>) => ({ ...kept, 'x-from-host': 'yes' }) },
    ...proxyOptions(),
  }
  await app.register(httpProxy, mount)
  t.teardown(() => app.close())
  const ask = async (more: Record<string, string>): Promise<[status: number, rewritten: unknown]> => {
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { ...headers, ...more }, payload: chat })
    return [reply.statusCode, reply.headers['x-from-host']]
  }
  for (const expected of [[200, 'yes'], [200, 'yes'], [200, 'yes']]) t.same(await ask({}), expected)
  t.equal(destinations, 1)
  t.same(await ask({ authorization: 'Bearer secret-of-the-mounts-group' }), [200, 'yes'])
  t.equal(destinations, 2, 'a group without an upstream goes where the mount goes')
  t.same(await ask({ 'x-refused': 'yes' }), [429, undefined])
  t.same(await ask({ authorization: 'Bearer wrong' }), [401, undefined])
  t.equal((await app.inject({ method: 'GET', url: '/v1/files', headers })).statusCode, 404)
  t.equal(upstream.requests.size, 4)
})

t.test('a preRewrite that refuses is asked each time', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, upstream: 'main' } }, routes: false,
  })
  const preRewrite = (url: string): string => {
    if (url.includes('refused')) throw Object.assign(new Error('not this one'), { statusCode: 418 })
    return url
  }
  const mount = { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', preRewrite, ...proxyOptions() }
  await app.register(httpProxy, mount)
  t.teardown(() => app.close())
  for (const [status, query] of [[200, ''], [200, ''], [418, '?refused']] as const) {
    t.equal((await app.inject({ method: 'POST', url: `/v1/chat/completions${query}`, headers, payload: chat })).statusCode, status)
  }
})

t.test('what a plugin before the gateway puts around the handlers of routes still decides about a mount', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  // As @fastify/otel does, for its spans.
  app.addHook('onRoute', (route) => {
    const { handler } = route
    route.handler = function (request, reply) {
      return request.headers['x-refused'] === 'yes' ? reply.code(403).send('no') : handler.call(this, request, reply)
    }
  })
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, upstream: 'main' } }, routes: false,
  })
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', ...proxyOptions() })
  t.teardown(() => app.close())
  for (const [status, more] of [[200, {}], [200, {}], [403, { 'x-refused': 'yes' }]] as const) {
    const call = { method: 'POST', url: '/v1/chat/completions', headers: { ...headers, ...more }, payload: chat } as const
    t.equal((await app.inject(call)).statusCode, status)
  }
  t.equal(upstream.requests.size, 2)
})

t.test('one proxyOptions() may be spread into several mounts of an app', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  const shared = proxyOptions()
  for (const prefix of ['/v1', '/v1beta']) {
    const mount = { upstream: upstream.url, prefix, rewritePrefix: prefix, ...shared }
    await app.register(httpProxy, mount)
  }
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  t.equal((await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })).statusCode, 200)
  await t.resolves(app.close())
})

t.test('a page of HTML in place of an error becomes the error of the protocol on a mount too', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startSeam(t, upstream.url, {})
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  for (const split of [undefined, 'bytes'] as const) {
    upstream.queue({ status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>', ...(split && { split }) })
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
    t.match([reply.statusCode, reply.json().error.code], [502, 'upstream_error'])
  }
  upstream.queue({ status: 403, headers: { 'content-type': 'text/html' }, body: '<h1>Forbidden</h1>' })
  const forbidden = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
  t.match([forbidden.statusCode, forbidden.json().error.type], [403, 'invalid_request_error'])
})

t.test('nor does a page pass where a mount sends with a transport of its own', async (t) => {
  const upstream = await startUpstream(t)
  for (const transport of [{ undici: { connections: 2 } }, { http: {} }]) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(httpProxy, Object.assign({ upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' }, proxyOptions(), transport))
    await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
    upstream.queue({ status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>' })
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
    t.match([reply.statusCode, reply.json().error.code], [502, 'upstream_error'])
  }
})

t.test('the handler of a mount works with reply-from alone, and with bodies that no type names', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  const { handler, undici, destroyAgent } = proxyOptions()
  await app.register(paths)
  await app.register(replyFrom, { base: upstream.url, undici, destroyAgent })
  app.post('/v1/chat/completions', {
    config: { llm: 'proxy' },
    preHandler: async (request) => {
      const llm = modelCallOf(request)
      if (llm !== null) llm.body.bytes = Buffer.from('{}')
    },
  }, (request, reply) => handler(request, reply, '/v1/chat/completions', {}))
  const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions' })
  t.equal(reply.statusCode, 200)
  t.match((await upstream.requests.next()).headers, { 'content-type': 'application/json', 'content-length': '2' })
  for (const status of [600, 999]) {
    upstream.queue({ status, body: {} })
    const odd = await app.inject({ method: 'POST', url: '/v1/chat/completions' })
    t.match([odd.statusCode, odd.json().error.code], [502, 'upstream_invalid'], String(status))
  }
})

t.test('the handler of a mount works without any option of reply-from, past it', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  const { handler, undici, destroyAgent } = proxyOptions()
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, upstream: 'main' } }, routes: false,
  })
  await app.register(replyFrom, { base: upstream.url, undici, destroyAgent })
  app.post('/v1/chat/completions', { config: { llm: 'proxy' } }, (request, reply) => handler(request, reply, '/v1/chat/completions', {}))
  for (let turn = 0; turn < 2; turn += 1) {
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
    t.equal(sha256(reply.rawPayload), sha256(replyFixture('chat_completions.json')))
  }
})

t.test('a function of the mount that throws fails its request alone, and is told in the log', async (t) => {
  const upstream = await startUpstream(t)
  const throws = (): never => { throw new Error('a secret of the host') }
  for (const own of [{}, { upstream: 'main' }]) {
    for (const name of ['rewriteRequestHeaders', 'getUpstream', 'queryString']) {
      const lines: string[] = []
      const app = Fastify({ logger: { level: 'error', stream: { write: (line: string) => { lines.push(line) } } } })
      t.teardown(async () => await app.close())
      const mount = { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', replyOptions: { [name]: throws }, ...proxyOptions() }
      await app.register(httpProxy, mount)
      const groups = { all: { protocols: everyProtocol, ...own } }
      await app.register(llmGateway, { ...gatewayOptions(upstream.url), groups, routes: false })
      const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
      t.match([reply.statusCode, reply.json().error.code], [500, 'internal_error'])
      t.notMatch(reply.body, /secret/)
      t.match(lines.map((line) => JSON.parse(line).err?.message), ['a secret of the host'], name)
    }
  }
  t.equal(upstream.seen.length, 0)
})

t.test('a hook that makes a model request of what is left alone has it refused: nobody was asked for a key', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url, { routes: false }))
  app.addHook('preHandler', async ({ raw }) => { if (raw.url === '/v1/unknown') raw.url = '/v1/models' })
  await app.register(httpProxy, { ...proxyOptions({ unknown: 'forward' }), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  // Before and after the mount's first request, which shows that it reaches its transport.
  for (const seen of [0, 1]) {
    t.equal((await app.inject('/v1/unknown')).statusCode, 500)
    t.equal(upstream.seen.length, seen)
    t.equal((await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })).statusCode, 200)
  }
})
