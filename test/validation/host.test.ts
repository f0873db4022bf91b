import { AsyncLocalStorage } from 'node:async_hooks'
import { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import replyFrom from '@fastify/reply-from'
import fc from 'fast-check'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { modelCallOf } from '../../plugins/core/call/model-call.js'
import { validation } from '../../plugins/validation/index.js'
import { startUpstream } from '../helpers/upstream.js'

const chat = '/v1/chat/completions'
const json = { 'content-type': 'application/json' }
const valid = '{"model":"m","messages":[{"role":"user","content":"x"}],"big":12345678901234567890}'

async function host (t: Test, add: (app: FastifyInstance) => unknown): Promise<FastifyInstance> {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(validation)
  await add(app)
  await app.ready()
  return app
}

t.test('requests that are none of ours are left alone', async (t) => {
  const app = await host(t, (app) => {
    app.post('/orders', async ({ body, llm }) => ({ body, llm }))
    app.post('/v1/unknown', async ({ body, llm }) => ({ body, llm }))
    app.get('/v1/models', async ({ llm }) => ({ endpoint: llm?.endpoint }))
    app.post('/v1/responses/:id/cancel', async ({ body }) => ({ body }))
  })
  const inject = async (method: 'GET' | 'POST', url: string, payload?: string): Promise<unknown> => {
    const reply = await app.inject({ method, url, ...(payload !== undefined && { headers: json, payload }) })
    return reply.json()
  }
  t.strictSame(await inject('POST', '/orders', '{"a":1}'), { body: { a: 1 }, llm: null })
  t.strictSame(await inject('POST', '/v1/unknown', '{"a":1}'), { body: { a: 1 }, llm: null })
  t.strictSame(await inject('GET', '/v1/models'), { endpoint: 'models.openai' })
  t.strictSame(await inject('POST', '/v1/responses/r/cancel', '{"a":1}'), { body: { a: 1 } }, 'an endpoint without a body to check')
  t.match(await inject('POST', '/orders', '{'), { code: 'FST_ERR_CTP_INVALID_JSON_BODY' }, 'the host\'s own errors')
})

t.test('a path that could be read in two ways is refused where nobody else does it', async (t) => {
  const app = await host(t, (app) => app.all('/*', async () => 'reached'))
  const reply = await app.inject({ method: 'POST', url: '/v1/chat%5ccompletions', headers: json, payload: valid })
  t.equal(reply.statusCode, 400)
  t.match(reply.json(), { error: { code: 'ambiguous_path' } })
})

t.test('a route of the host on a path of ours gets its body as the host parses it', async (t) => {
  const app = await host(t, (app) => app.post(
    chat, async (request) => ({ body: request.body, model: request.llm?.model, bytes: modelCallOf(request)?.body.bytes?.length })
  ))
  const reply = await app.inject({ method: 'POST', url: chat, headers: json, payload: valid })
  t.strictSame(reply.json(), { body: JSON.parse(valid), model: 'm', bytes: valid.length })
  t.equal((await app.inject({ method: 'POST', url: chat, headers: json, payload: '{}' })).statusCode, 400)
})

t.test('a body that the host gives to reply.from is sent as the host gives it', async (t) => {
  const upstream = await startUpstream(t)
  const app = await host(t, async (app) => {
    await app.register(replyFrom, { base: upstream.url })
    app.post('/v1/responses', (_request, reply) => reply.from('/v1/responses', { body: { mine: true } }))
    app.post(chat, (_request, reply) => reply.from(chat))
  })
  await app.inject({ method: 'POST', url: '/v1/responses', headers: json, payload: '{"model":"m","input":"x"}' })
  t.equal((await upstream.requests.next()).body.toString(), '{"mine":true}')
  await app.inject({ method: 'POST', url: chat, headers: json, payload: valid })
  t.equal((await upstream.requests.next()).body.toString(), valid, 'and the received bytes where it gives none')
})

t.test('a route that claims to be ours but brings no bytes is refused', async (t) => {
  const app = await host(t, (app) => app.post(chat, { config: { llm: 'own' } }, async () => 'reached'))
  const reply = await app.inject({ method: 'POST', url: chat, headers: json, payload: valid })
  t.match(reply.json(), { error: { code: 'missing_body' } })
})

t.test('a stream that the host puts in place of the body is the one that is read', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('preParsing', async () => Readable.from([valid.replace('"m"', '"n"')]))
  await app.register(validation)
  app.post(chat, async ({ body, llm }) => ({ body, model: llm?.model }))
  const reply = await app.inject({ method: 'POST', url: chat, headers: json, payload: valid })
  t.match(reply.json(), { body: { model: 'n' }, model: 'n' })
})

t.test('async context of the host survives the reading of a body', async (t) => {
  const store = new AsyncLocalStorage<string>()
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onRequest', (_request, _reply, done) => store.run('of this request', done))
  await app.register(validation)
  app.post(chat, async () => ({ context: store.getStore() }))
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const reply = await fetch(url + chat, { method: 'POST', headers: json, body: valid })
  t.strictSame(await reply.json(), { context: 'of this request' })
})

t.test('whatever the content type, what reaches a mount was validated', async (t) => {
  const upstream = await startUpstream(t)
  const app = await host(t, async (app) => {
    await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  })
  const piece = fc.constantFrom(
    'application/json', 'Application/JSON', 'text/plain', 'multipart/form-data', 'application/x-www-form-urlencoded', '; charset=utf-8',
    '; charset=utf-16', '; boundary=b',
    ';', ',', ' ', '\t', '+json', 'application/vnd.api+json', 'x', '"', '/', '*')
  let passed = 0
  await fc.assert(fc.asyncProperty(fc.array(piece, { maxLength: 3 }), fc.constantFrom(valid, '{}', '{"model":"m"}', '[]', 'x', ''), async (
    pieces, payload
  ) => {
    const before = upstream.seen.length
    const reply = await app.inject({ method: 'POST', url: chat, headers: { 'content-type': pieces.join('') }, payload })
    const reached = upstream.seen.length > before
    if (reached) passed += 1
    return reached ? payload === valid && reply.statusCode === 200 : [400, 415].includes(reply.statusCode)
  }), { numRuns: 400, examples: [[['application/json'], valid], [['application/json', '; charset=utf-8'], valid]] })
  t.ok(passed > 1, `${passed} passed`)
})
