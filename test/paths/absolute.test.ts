/** Requests that name the whole address, as to a proxy: a server must take them (RFC 9112 3.2.2). */
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { auth, createRewriteUrl, proxyOptions } from '../../plugins/index.js'
import { everyProtocol, gatewayOptions, listen, providerSecret, secret } from '../helpers/gateway.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { askOnce } from '../helpers/wire.js'
import { start, yaml } from '../standalone/run.js'

const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const groups = { all: { protocols: everyProtocol } }
const keys = [{ id: 'caller', group: 'all', secret }]

async function mounts (app: FastifyInstance, { url }: Upstream, options: () => object): Promise<void> {
  const replyOptions = {
    rewriteRequestHeaders: (_: unknown, given: object) => ({ ...given, authorization: `Bearer ${providerSecret}` }),
  }
  for (const prefix of ['/v1', '/v1beta']) {
    const all: { upstream: string } = Object.assign({ upstream: url, prefix, rewritePrefix: prefix, replyOptions }, options())
    await app.register(httpProxy, all)
  }
}

async function listening (
  t: Test, build: (app: FastifyInstance) => Promise<unknown>, options: FastifyServerOptions = {}
): Promise<string> {
  const app = Fastify(options)
  t.teardown(() => app.close())
  await build(app)
  app.get('/own', async (request) => ({ llm: request.llm }))
  return await listen(app)
}

const places: Record<string, (t: Test, upstream: Upstream) => Promise<string>> = {
  'our own routes': async (t, { url }) => await listening(t, async (app) => await app.register(llmGateway, gatewayOptions(url))),
  'our own routes behind a rewriteUrl': async (t, { url }) => await listening(
    t, async (app) => await app.register(llmGateway, gatewayOptions(url)), { rewriteUrl: createRewriteUrl() }
  ),
  'adapted mounts': async (t, upstream) => await listening(t, async (app) => {
    await app.register(llmGateway, { groups, keys, routes: false })
    await mounts(app, upstream, proxyOptions)
  }),
  'mounts that nobody adapted': async (t, upstream) => await listening(t, async (app) => {
    await app.register(llmGateway, { groups, keys, routes: false })
    await mounts(app, upstream, () => ({}))
  }),
  'auth alone beside mounts': async (t, upstream) => await listening(t, async (app) => {
    await app.register(auth, { groups, keys })
    await mounts(app, upstream, () => ({}))
  }),
  'a standalone gateway': async (t, { url }) => (await start(t, yaml(url, [secret]))).origin,
}

for (const [name, begin] of Object.entries(places)) {
  t.test(`${name}: a whole address is served as its path is, and its host goes nowhere`, async (t) => {
    const upstream = await startUpstream(t)
    const url = await begin(t, upstream)
    const ask = async (target: string, host = 'gateway.example', key = secret): Promise<number> => {
      const headers = [`host: ${host}`, `authorization: Bearer ${key}`, 'content-type: application/json']
      return (await askOnce(url, [`POST ${target} HTTP/1.1`, ...headers], chat)).status
    }
    t.equal(await ask('http://gateway.example/v1/chat/completions?a=1&%3Bkey=c4nary'), 200)
    t.equal(await ask('HTTPS://Gateway.example:8443/v1/chat/completions?a=1', 'gateway.example:8443'), 200)
    if (name !== 'auth alone beside mounts') t.equal(await ask('http://gateway.example//v1/v1/chat/completions?a=1'), 200)
    for (const { url, rawHeaders } of upstream.seen.splice(0)) {
      t.equal(url, '/v1/chat/completions?a=1')
      t.notMatch(rawHeaders.join(' '), /gateway\.example|sk-caller/)
    }
    t.equal(await ask('http://gateway.example/v1/chat/completions', 'gateway.example', 'wrong'), 401)
    for (const target of [
      'http://other.example/v1/chat/completions', 'http://u@gateway.example/v1/chat/completions', 'http:///v1/chat/completions?key=c4nary',
      'http://gateway.example/v1/chat/completions#?key=c4nary', 'http://gateway.example/v1/%2e/chat/completions',
    ]) {
      const reply = await askOnce(url, [`POST ${target} HTTP/1.1`, 'host: gateway.example', `authorization: Bearer ${secret}`], chat)
      t.equal(reply.status, 400, target)
      if (name !== 'auth alone beside mounts') t.notMatch(reply.body, /c4nary|FST_/)
    }
    t.equal(upstream.seen.length, 0, 'nothing of those went upstream')
  })
}

t.test('an unknown path is told without the address before it', async (t) => {
  const url = await listening(t, async (app) => await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9')))
  const reply = await askOnce(url, ['GET http://h/v1/unknown?key=c4nary HTTP/1.1', 'host: h'])
  t.match(reply.body, 'Unknown request URL: GET /v1/unknown.')
  t.notMatch(reply.body, 'c4nary')
  for (const target of ['http://other/v1/unknown', 'HTTP://other/v1/unknown?a=b', '/v1/unknown?a=b']) {
    t.match((await askOnce(url, [`GET ${target} HTTP/1.1`, 'host: h'])).body, 'Unknown request URL: GET /v1/unknown.', target)
  }
  const pasted = await askOnce(url, ['GET /v1/http://h/v1/unknown HTTP/1.1', 'host: h'])
  t.match(pasted.body, 'Unknown request URL: GET /v1/http://h/v1/unknown.', 'one that is pasted into a path is told')
  t.match((await askOnce(url, ['GET http://other/own HTTP/1.1', 'host: h'])).body, '{"llm":null}', 'what is the host\'s stays the host\'s')
})
