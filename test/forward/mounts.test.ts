import httpProxy from '@fastify/http-proxy'
import replyFrom from '@fastify/reply-from'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { paths, proxyOptions } from '../../plugins/index.js'
import { call, everyProtocol, gatewayOptions, listen, providerSecret, read, secret } from '../helpers/gateway.js'
import { replyFixture, sha256, startUpstream } from '../helpers/upstream.js'
import { chat, headers, hostSecret, mounts, startHost, startSeam } from './mount-hosts.js'

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
