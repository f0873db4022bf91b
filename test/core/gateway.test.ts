import Fastify from 'fastify'
import t from 'tap'
import { gatewayOf, joinGateway } from '../../plugins/core/gateway.js'
import { metrics } from '../../plugins/metrics/index.js'

t.test('what a host has by the name of the gateway is not taken for it', async (t) => {
  for (const own of [{ client: 1 }, null, () => 1]) {
    const app = Fastify()
    t.teardown(() => app.close())
    Reflect.apply(app.decorate, app, ['llm', own])
    await t.rejects(async () => await app.register(metrics), { code: 'FST_ERR_DEC_ALREADY_PRESENT' })
    t.strictSame(Object.keys(Object(own)), own === null ? [] : Object.keys(own))
  }
})

t.test('the second plugin joins what the first one made', async (t) => {
  const app = Fastify({ routerOptions: { caseSensitive: false } })
  t.equal(joinGateway(app, '/llm/'), joinGateway(app))
  t.equal(gatewayOf(app).prefix, '/llm')
  t.match(gatewayOf(app).resolve('POST', '/LLM/v1/messages', {}), { code: 'ambiguous_path' })
  t.equal(gatewayOf(app).destinationOf(Object(null)), null)
  const { recorder } = gatewayOf(app)
  recorder.gauge('key_cache_entries', () => [])()
})
