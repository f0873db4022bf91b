import { connect } from 'node:http2'
import Fastify from 'fastify'
import t from 'tap'
import { auth } from '../../plugins/auth/index.js'
import { paths, createRewriteUrl } from '../../plugins/paths/index.js'
import { secret } from '../helpers/gateway.js'
import { hostAuth } from '../helpers/host.js'
import { build, buildLogged } from './seen-host.js'

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
    '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=canary', '/upload/v1beta/files?a=1&key=canary',
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

t.test('a rewriteUrl that leaves unknown paths, or has a prefix, leaves the key of those that Google has without a version', async (t) => {
  for (const options of [{ unknown: 'leave' }, { prefix: '/llm' }] as const) {
    const { app, lines } = await buildLogged(t, options)
    await app.inject({ method: 'POST', url: '/upload/v1beta/files?key=its' })
    t.match(lines.join(''), /"\/upload\/v1beta\/files\?key=its/)
    await app.inject({ method: 'POST', url: '/llm/v1beta/files?key=canary' })
    if ('prefix' in options) t.notMatch(lines.join(''), /canary/, 'below it, it is taken out')
  }
})

t.test('nor does a browser that asks beforehand, by the URL with the key in it, bring it there', async (t) => {
  const { app, lines } = await buildLogged(t)
  const urls = [
    '/v1beta/models/m:generateContent?alt=sse&key=canary', '/v1beta/models?key=canary', '/v1beta/unknown?key=canary',
    '/models/m:streamGenerateContent?key=canary', '/upload/v1beta/files?key=canary',
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
