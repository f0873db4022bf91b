/** A refused path that a host sends on all the same, from its error handler. */
import replyFrom from '@fastify/reply-from'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../../../plugins/index.js'
import { everyProtocol, gatewayOptions, listen, secret } from '../../helpers/gateway.js'
import { startUpstream } from '../../helpers/upstream.js'

t.test('a refused path that an error handler sends on goes without its caller\'s key', async (t) => {
  for (const routes of [true, false]) {
    const upstream = await startUpstream(t)
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(replyFrom, { base: upstream.url })
    let fails = true
    app.addHook('onSend', async () => {
      if (!fails) return
      fails = false
      throw new Error('no')
    })
    app.setErrorHandler((_error, _request, reply) => reply.from('/elsewhere'))
    const host = { groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false }
    await app.register(llmGateway, routes ? gatewayOptions(upstream.url) : host)
    if (!routes) app.get('/v1/*', (_request, reply) => reply.from())
    const base = await listen(app)
    for (const path of ['/v1/unknown', '/v1/chat/unknown?key=' + secret, '/v1beta/models/m:unknown']) {
      fails = true
      const headers = { authorization: `Bearer ${secret}`, 'x-api-key': secret, 'x-goog-api-key': secret }
      const reply = await fetch(base + path, { headers })
      await reply.arrayBuffer()
      const sent = await upstream.requests.next()
      t.notMatch(JSON.stringify([sent.url, sent.headers]), secret, `${path}, own routes: ${routes}`)
    }
  }
})
