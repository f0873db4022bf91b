import Fastify from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { forward } from '../../plugins/forward/index.js'
import { upstreams } from '../../plugins/upstreams/index.js'
import { providerSecret } from '../helpers/gateway.js'
import { sha256, startUpstream } from '../helpers/upstream.js'

t.test('the forward plugin alone is an open door with the provider\'s credential', async (t) => {
  const upstream = await startUpstream(t)
  const log: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => { log.push(line) } } }
  const app = Fastify({ logger, routerOptions: { caseSensitive: false } })
  t.teardown(() => app.close())
  await app.register(upstreams, { upstreams: { main: { url: upstream.url, credential: providerSecret } } })
  await app.register(forward, { prefix: '/llm' })

  const payload = '{"any": 1.0}'
  const reply = await app.inject({
    method: 'POST', url: '/llm/v1/chat/completions', payload, headers: { 'content-type': 'application/json' },
  })
  t.equal(reply.statusCode, 200)
  const seen = await upstream.requests.next()
  t.match([seen.url, seen.sha256, seen.headers.authorization], ['/v1/chat/completions', sha256(payload), `Bearer ${providerSecret}`])

  await app.inject({ method: 'POST', url: '/llm/v1/chat/completions', payload, headers: { ':authority': 'h2.example' } })
  const untyped = await upstream.requests.next()
  t.equal(untyped.headers['content-type'], 'application/json')
  t.notOk(untyped.rawHeaders.some((name) => name.startsWith(':')), 'pseudo headers of HTTP/2 stay here')

  const odd = await app.inject({ method: 'GET', url: '/llm/v1/models/a%5cb' })
  t.match([odd.statusCode, odd.json().error.code], [400, 'ambiguous_path'])
  const form = await app.inject({
    method: 'POST', url: '/llm/v1/responses/a%5cb/cancel', payload: 'x', headers: { 'content-type': 'text/plain' },
  })
  t.match([form.statusCode, form.json().error.code], [400, 'ambiguous_path'])
  t.equal((await app.inject({ method: 'GET', url: '/LLM/v1/models' })).statusCode, 400, 'a lenient router does not widen what is ours')
  t.equal(upstream.seen.length, 2)
  t.match(log, [/without the plugin auth whoever reaches these routes uses the credentials/])
})

t.test('routes that no upstream is there for fail the start', async (t) => {
  for (const own of [{}, null]) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(forward)
    if (own !== null) await app.register(upstreams, own)
    await t.rejects(async () => await app.ready(), { code: 'LLM_GATEWAY_OPTION', message: /forward\.routes needs the plugin upstreams/ })
  }
})

t.test('a route that the reader of paths does not know is nobody\'s', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(upstreams, { upstreams: { main: { url: 'http://127.0.0.1:1' } } })
  await app.register(forward)
  gatewayOf(app).resolve = () => null
  t.equal((await app.inject({ method: 'GET', url: '/v1/models' })).statusCode, 404)
})

t.test('own routes stand where the scope and the prefix together say, once', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: { ok: true } })
  const cases: [scope: string, prefix: string | undefined, url: string][] = [
    ['/api', undefined, '/api/v1/embeddings'], ['/api/', '/api', '/api/v1/embeddings'], ['/api', '/llm', '/api/llm/v1/embeddings'],
    ['/api/v1', undefined, '/api/v1/embeddings'], ['/v1', undefined, '/v1/embeddings'],
  ]
  for (const [scopePrefix, prefix, url] of cases) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(async (scope) => {
      await scope.register(upstreams, { upstreams: { main: { url: upstream.url } } })
      await scope.register(forward, { ...prefix !== undefined && { prefix } })
    }, { prefix: scopePrefix })
    t.equal((await app.inject({ method: 'POST', url, payload: {} })).statusCode, 200, `${url} in ${scopePrefix}`)
    t.equal((await upstream.requests.next()).url, '/v1/embeddings')
  }
})
