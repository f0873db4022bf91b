import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import llmGateway, { type LlmGatewayOptions } from '../../plugins/index.js'
import { sha256, startUpstream, type Upstream } from '../helpers/upstream.js'

const headers = { authorization: 'Bearer sk-chat', 'content-type': 'application/json' }

async function startGateway (t: { teardown: (close: () => unknown) => unknown }, upstream: Upstream, options: Partial<LlmGatewayOptions> = {}): Promise<FastifyInstance> {
  const app = Fastify()
  await app.register(llmGateway, {
    upstreams: { main: { url: upstream.url, credential: 'provider-secret' } },
    groups: { all: { protocols: ['chat_completions', 'responses', 'images', 'embeddings', 'messages', 'generate_content'] } },
    keys: [{ id: 'k', group: 'all', secret: 'sk-chat' }],
    ...options,
  })
  t.teardown(() => app.close())
  return app
}

t.test('the bytes go through unchanged in both directions', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startGateway(t, upstream)
  const body = '{ "model" : "m",  "big":12345678901234567890, "one": 1.0, "messages":[{"role":"user","content":"h\\u00e9"}] }'
  const reply = await app.inject({ method: 'POST', url: '/v1/v1/chat/completions', headers, payload: body })
  t.equal(reply.statusCode, 200, reply.body)
  const seen = await upstream.requests.next()
  t.equal(seen.sha256, sha256(body))
  t.equal(seen.url, '/v1/chat/completions')
  t.equal(seen.headers.authorization, 'Bearer provider-secret')
})
