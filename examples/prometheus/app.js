/** An app that has metrics of its own: the gateway's join them in the same registry and on the same route. */
import Fastify from 'fastify'
import llmGateway from 'fastify-llm-gateway'
import { Registry, collectDefaultMetrics } from 'prom-client'

const { UPSTREAM_URL = 'https://api.openai.com', UPSTREAM_KEY, GATEWAY_KEY, HOST = '127.0.0.1', PORT = '8080' } = process.env

const registry = new Registry()
collectDefaultMetrics({ register: registry })

const app = Fastify()

await app.register(llmGateway, {
  upstreams: { main: { url: UPSTREAM_URL, credential: UPSTREAM_KEY } },
  groups: { chat: { protocols: ['chat_completions', 'responses', 'embeddings'] } },
  keys: [{ id: 'dev', group: 'chat', secret: GATEWAY_KEY }],
  metrics: { registry },
})

app.get('/metrics', async (request, reply) => {
  reply.type(registry.contentType)
  return registry.metrics()
})

console.log(`listening on ${await app.listen({ host: HOST, port: Number(PORT) })}`)
