/** A gateway as many run it: one mount of `@fastify/http-proxy`, the provider's key put in on the way. */
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import llmGateway, { proxyOptions } from 'fastify-llm-gateway'

const { UPSTREAM_URL = 'https://api.openai.com', UPSTREAM_KEY = '', HOST = '127.0.0.1', PORT = '8080' } = process.env

const app = Fastify()

const keys = [{ id: 'dev', group: 'chat', secret: process.env.GATEWAY_KEY }]
await app.register(llmGateway, {
  routes: false, keys, groups: { chat: { protocols: ['chat_completions', 'responses', 'embeddings'] } },
})
app.register(httpProxy, {
  ...proxyOptions(),
  upstream: UPSTREAM_URL,
  prefix: '/v1',
  rewritePrefix: '/v1',
  replyOptions: {
    rewriteRequestHeaders: (request, headers) => ({ ...headers, authorization: `Bearer ${UPSTREAM_KEY}` }),
  },
})

console.log(`listening on ${await app.listen({ host: HOST, port: Number(PORT) })}`)
