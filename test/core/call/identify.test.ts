import Fastify from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../../plugins/core/gateway.js'
import { refusalOf } from '../../../plugins/core/call/identify.js'
import { paths } from '../../../plugins/index.js'

t.test('a model request has no refusal, nor has a request of the host', async (t) => {
  const app = Fastify()
  t.teardown(async () => await app.close())
  app.register(paths)
  app.post('/*', (request, reply) => { reply.send({ refusal: refusalOf(gatewayOf(request.server), request) }) })
  for (const url of ['/v1/chat/completions', '/orders']) {
    const reply = await app.inject({ method: 'POST', url, payload: {} })
    t.same(reply.json(), { refusal: null }, url)
  }
})
