/** Upstreams that take tokens of a cloud instead of keys: Azure OpenAI with Entra ID, Vertex AI with the service account of the machine. */
import Fastify from 'fastify'
import llmGateway from 'fastify-llm-gateway'
import { entraToken, vertexToken } from './tokens.js'

const { AZURE_URL, VERTEX_URL, GATEWAY_KEY, HOST = '127.0.0.1', PORT = '8080' } = process.env

const app = Fastify()

await app.register(llmGateway, {
  upstreams: {
    azure: { url: AZURE_URL, path: 'verbatim', credential: entraToken },
    vertex: { url: VERTEX_URL, path: 'verbatim', credential: vertexToken },
  },
  groups: { chat: { protocols: ['chat_completions'], routes: [{ models: ['google/*'], upstream: 'vertex' }], upstream: 'azure' } },
  keys: [{ id: 'dev', group: 'chat', secret: GATEWAY_KEY }],
})

console.log(`listening on ${await app.listen({ host: HOST, port: Number(PORT) })}`)
