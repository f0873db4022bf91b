import httpProxy from '@fastify/http-proxy'
import replyFrom from '@fastify/reply-from'
import Fastify from 'fastify'
import t from 'tap'
import { modelCallOf } from '../../plugins/core/call/model-call.js'
import llmGateway, { paths, proxyOptions } from '../../plugins/index.js'
import { everyProtocol, gatewayOptions } from '../helpers/gateway.js'
import { replyFixture, sha256, startUpstream } from '../helpers/upstream.js'
import { chat, headers, startSeam } from './mount-hosts.js'

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
