import Fastify from 'fastify'
import t from 'tap'
import { paths, createRewriteUrl } from '../../plugins/paths/index.js'
import { listen } from '../helpers/gateway.js'
import { askOnce } from '../helpers/wire.js'
import { build } from './seen-host.js'

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
