import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { createRewriteUrl, proxyOptions } from '../../plugins/index.js'
import { everyProtocol, gatewayOptions, secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

const call = {
  method: 'POST',
  headers: { authorization: `Bearer ${secret}`, host: 'gateway.test' },
  payload: { model: 'm', messages: [{ role: 'user', content: 'x' }] },
} as const

for (const prefix of ['/llm/v1', '/llm/v1/', '/llm/v1/v1beta']) {
  for (const kind of ['own routes', 'a mount', 'a constructor with rewriteUrl']) {
    t.test(`no version is doubled where the prefix ends in one: ${prefix}, ${kind}`, async (t) => {
      const upstream = await startUpstream(t)
      const app = Fastify(kind.startsWith('a c') ? { rewriteUrl: createRewriteUrl({ prefix }) } : {})
      t.teardown(() => app.close())
      const routes = kind !== 'a mount'
      await app.register(llmGateway, gatewayOptions(upstream.url, { prefix, routes }))
      if (!routes) await app.register(httpProxy, { ...proxyOptions(), upstream: upstream.url, prefix: '/llm/v1', rewritePrefix: '/v1' })
      for (const base of ['/llm/v1', '/llm/v1/v1', '/llm/v1beta', '/llm']) {
        const reply = await app.inject({ ...call, url: `${base}/chat/completions` })
        t.equal(reply.statusCode, 200, base)
      }
      t.strictSame([...new Set(upstream.seen.map(({ url }) => url))], ['/v1/chat/completions'])
      const { statusCode, body } = await app.inject({ ...call, url: '/llm/v1/chat/completion' })
      t.equal(statusCode, 404)
      t.match(body, 'Use the base URL http://gateway.test/llm/v1 with your client; if it does, this endpoint is not served here.')
    })
  }
}

const mounts = [
  { prefix: '/', rewritePrefix: '/v1/' }, { prefix: '/', upstream: '/v1/' }, { prefix: '/', upstream: '/v1beta/' },
  { prefix: '/llm', rewritePrefix: '/v1' }, { prefix: '/llm', upstream: '/v1' }, { prefix: '/llm', rewritePrefix: '/v1alpha' },
]
const ways = {
  'a mount': { adapted: true, ownUpstream: false },
  'a mount of groups with an upstream': { adapted: true, ownUpstream: true },
  'a plain mount': { adapted: false, ownUpstream: false },
}

for (const [way, { adapted, ownUpstream }] of Object.entries(ways)) {
  t.test(`no version of another family stands before a request's own: ${way}`, async (t) => {
    const upstream = await startUpstream(t)
    upstream.respond = () => ({ body: {} })
    for (const mount of mounts) {
      const app = Fastify()
      t.teardown(() => app.close())
      const prefix = mount.prefix === '/' ? '' : mount.prefix
      const given = gatewayOptions(upstream.url, { prefix, routes: false })
      const groups = { all: { protocols: everyProtocol, ...ownUpstream ? { upstream: 'main' } : {} } }
      await app.register(llmGateway, { ...given, groups })
      const base = upstream.url + (mount.upstream ?? '')
      await app.register(httpProxy, { ...adapted ? proxyOptions() : {}, ...mount, upstream: base })
      const gemini = '/v1beta/models/m:generateContent?alt=sse'
      for (const url of [gemini, `/v1${gemini}`, '/v1/chat/completions']) {
        const payload = url.includes('chat') ? call.payload : { contents: [{ parts: [{ text: 'x' }] }] }
        const headers = { 'x-goog-api-key': secret, authorization: `Bearer ${secret}` }
        const { statusCode } = await app.inject({ method: 'POST', url: prefix + url, headers, payload })
        t.equal(statusCode, 200, url)
      }
      t.strictSame(upstream.seen.splice(0).map(({ url }) => url), [gemini, gemini, '/v1/chat/completions'], JSON.stringify(mount))
    }
  })
}
