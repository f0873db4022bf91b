import httpProxy from '@fastify/http-proxy'
import replyFrom from '@fastify/reply-from'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { everyProtocol, gatewayOptions, secret } from '../helpers/gateway.js'
import { replyFixture, sha256, startUpstream } from '../helpers/upstream.js'

type Scope = NonNullable<Parameters<typeof startUpstream>[0]>

const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
const geminiHeaders = { 'x-goog-api-key': secret, 'content-type': 'application/json' }
const payload = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const contents = '{"contents":[{"parts":[{"text":"x"}]}]}'
const url = '/v1/chat/completions'
const groups = { own: { protocols: everyProtocol, upstream: 'main' }, mounts: { protocols: everyProtocol } }
const keys = [{ id: 'a', group: 'own', secret }, { id: 'b', group: 'mounts', secret: 'sk-mount' }]

async function startGateway (t: Scope, upstreamUrl: string): Promise<FastifyInstance> {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, { ...gatewayOptions(upstreamUrl), groups, keys, routes: false })
  return app
}

/** A mount that counts how often it is asked where a URL goes. */
async function startMount (t: Scope, upstreamUrl: string, options: object = {}, before: (app: FastifyInstance) => void = () => {}): Promise<{ app: FastifyInstance, asked: () => number }> {
  const app = Fastify()
  t.teardown(() => app.close())
  before(app)
  await app.register(llmGateway, { ...gatewayOptions(upstreamUrl), groups, keys, routes: false })
  let asked = 0
  const preRewrite = (given: string): string => {
    asked += 1
    return given
  }
  const mount = { upstream: upstreamUrl, preRewrite, ...proxyOptions(), ...options }
  await app.register(httpProxy, mount)
  return { app, asked: () => asked }
}

t.test('a mount is asked once for each URL, and its say in the headers of replies stays', async (t) => {
  const upstream = await startUpstream(t)
  const { app, asked } = await startMount(t, upstream.url, {
    replyOptions: { rewriteHeaders: (kept: Record<string, unknown>) => ({ ...kept, 'x-from-host': 'yes' }) },
  })
  for (let turn = 1; turn <= 3; turn += 1) {
    const reply = await app.inject({ method: 'POST', url, headers, payload })
    t.match([reply.statusCode, reply.headers['x-from-host'], sha256(reply.rawPayload)], [200, 'yes', sha256(replyFixture('chat_completions.json'))])
    const seen = await upstream.requests.next()
    t.match([seen.url, seen.sha256, seen.headers.authorization], [url, sha256(payload), 'Bearer provider-secret-9876543210'])
  }
  t.equal(asked(), 1)
})

t.test('a URL with a query is not remembered, nor more URLs than there is room for', async (t) => {
  const upstream = await startUpstream(t)
  const { app, asked } = await startMount(t, upstream.url)
  for (let turn = 1; turn <= 2; turn += 1) t.equal((await app.inject({ method: 'POST', url: `${url}?turn=1`, headers, payload })).statusCode, 200)
  t.equal(asked(), 2)
  for (const askedThen of [2 + 70, 2 + 70 + 6]) {
    for (let model = 0; model < 70; model += 1) await app.inject({ method: 'POST', url: `/v1beta/models/m-${model}:generateContent`, headers: geminiHeaders, payload: contents })
    t.equal(asked(), askedThen)
  }
  t.equal(upstream.seen.length, 2 + 2 * 70)
})

t.test('a path that could be read in two ways is refused before the mount is asked', async (t) => {
  const upstream = await startUpstream(t)
  const { app, asked } = await startMount(t, upstream.url)
  const escape = '/v1beta/models/%5c..%5cm:generateContent'
  for (let turn = 1; turn <= 2; turn += 1) {
    const reply = await app.inject({ method: 'POST', url: escape, headers: geminiHeaders, payload: contents })
    t.equal(reply.statusCode, 400, reply.body)
  }
  t.match([upstream.seen.length, asked()], [0, 0])
})

t.test('a group that goes where the mount goes asks it each time, whoever came before', async (t) => {
  const upstream = await startUpstream(t)
  const { app, asked } = await startMount(t, upstream.url)
  for (const [given, times] of [[secret, 1], ['sk-mount', 2], ['sk-mount', 3], [secret, 3]] as const) {
    const reply = await app.inject({ method: 'POST', url, headers: { ...headers, authorization: `Bearer ${given}` }, payload })
    t.match([reply.statusCode, asked()], [200, times])
  }
})

t.test('requests without a body and those of the host are the mount\'s to serve', async (t) => {
  const upstream = await startUpstream(t)
  const { app, asked } = await startMount(t, upstream.url)
  upstream.respond = () => ({ body: { ok: true } })
  for (const path of ['/v1/models', '/health']) {
    for (let turn = 1; turn <= 2; turn += 1) t.equal((await app.inject({ method: 'GET', url: path, headers })).statusCode, 200)
  }
  t.equal(asked(), 4)
})

t.test('options that change requests, and upstreams that a mount chooses, are heard each time', async (t) => {
  const upstream = await startUpstream(t)
  for (const replyOptions of [
    { getUpstream: () => upstream.url },
    { rewriteRequestHeaders: (_: unknown, given: object) => ({ ...given, 'x-host': 'yes' }) },
  ]) {
    const { app, asked } = await startMount(t, upstream.url, { replyOptions })
    for (let turn = 1; turn <= 2; turn += 1) t.equal((await app.inject({ method: 'POST', url, headers, payload })).statusCode, 200)
    t.equal(asked(), 2)
  }
})

t.test('a function that a host put around the handler runs for each request', async (t) => {
  const upstream = await startUpstream(t)
  let ran = 0
  const { app, asked } = await startMount(t, upstream.url, {}, (host) => {
    host.addHook('onRoute', (route) => {
      const { handler } = route
      route.handler = function (request, reply) {
        ran += 1
        return handler.call(this, request, reply)
      }
    })
  })
  for (let turn = 1; turn <= 2; turn += 1) t.equal((await app.inject({ method: 'POST', url, headers, payload })).statusCode, 200)
  t.match([ran, asked()], [2, 2])
})

t.test('a host\'s own route that ends in the handler of a mount runs for each request', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startGateway(t, upstream.url)
  const { config, handler: forward, undici, destroyAgent } = proxyOptions()
  await app.register(replyFrom, { base: upstream.url, undici, destroyAgent })
  let ran = 0
  app.route({
    method: 'POST',
    url,
    config,
    handler (request, reply) {
      ran += 1
      return forward(request, reply, url, {})
    },
  })
  for (let turn = 1; turn <= 2; turn += 1) t.equal((await app.inject({ method: 'POST', url, headers, payload })).statusCode, 200)
  t.equal(ran, 2)
})
