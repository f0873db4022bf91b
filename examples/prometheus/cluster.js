/**
 * As many workers as you like behind one port, and one scrape for all of them: prom-client's AggregatorRegistry asks each
 * worker for its metrics and adds them up. Scrape the primary; a worker alone knows only its own share.
 */
import cluster from 'node:cluster'
import { createServer } from 'node:http'
import Fastify from 'fastify'
import llmGateway from 'fastify-llm-gateway'
import { AggregatorRegistry, Registry } from 'prom-client'

const { WORKERS = '2', UPSTREAM_URL = 'https://api.openai.com', UPSTREAM_KEY, GATEWAY_KEY, PORT = '8080', METRICS_PORT = '9090' } = process.env

// In the primary it asks the workers; in a worker it answers.
const workers = new AggregatorRegistry()

async function primary () {
  const scrape = createServer(async (request, response) => {
    response.setHeader('content-type', workers.contentType)
    response.end(await workers.clusterMetrics())
  })
  for (let worker = 0; worker < Number(WORKERS); worker += 1) cluster.fork()
  scrape.listen(Number(METRICS_PORT), '127.0.0.1', () => console.log(`metrics on http://127.0.0.1:${scrape.address().port}/metrics`))
}

async function worker () {
  const registry = new Registry()
  // Without this it would answer with the global registry, in which there is nothing.
  AggregatorRegistry.setRegistries([registry])
  const app = Fastify()
  await app.register(llmGateway, {
    upstreams: { main: { url: UPSTREAM_URL, credential: UPSTREAM_KEY } },
    groups: { chat: { protocols: ['chat_completions', 'responses', 'embeddings'] } },
    keys: [{ id: 'dev', group: 'chat', secret: GATEWAY_KEY }],
    metrics: { registry },
  })
  console.log(`worker ${cluster.worker.id} listening on ${await app.listen({ host: '127.0.0.1', port: Number(PORT) })}`)
}

await (cluster.isPrimary ? primary() : worker())
