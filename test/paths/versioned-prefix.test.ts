import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { createRewriteUrl, proxyOptions } from '../../plugins/index.js'
import { gatewayOptions, secret } from '../helpers/gateway.js'
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
      t.match(body, 'Use the base URL http://gateway.test/llm/v1 with your client.')
    })
  }
}
