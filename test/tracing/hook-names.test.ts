import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { call, gatewayOptions, listen, read } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { scopeOf, startTracing } from './sdk.js'

for (const place of ['own routes', 'a mount'] as const) {
  t.test(`an instrumented app shows hooks by the names of their plugins: ${place}`, async (t) => {
    const { finished } = startTracing(t, { sdk: true, http: false, undici: false, fastify: true })
    const upstream = await startUpstream(t)
    const app = Fastify()
    t.teardown(async () => await app.close())
    const routes = place === 'own routes'
    const options = gatewayOptions(upstream.url, {
      routes,
      labels: { header: 'x-labels' },
      overload: {},
      prices: { models: { '*': { input: 1, output: 1 } } },
      costs: { header: true },
      ...!routes && { upstreams: {} },
    })
    await app.register(llmGateway, options)
    if (!routes) await app.register(httpProxy, { ...proxyOptions(), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
    const url = await listen(app)
    await read(await call(`${url}/v1/chat/completions`, { body: '{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]}' }).reply)
    const names = finished().filter((span) => scopeOf(span) === '@fastify/otel').map(({ name }) => name)
    t.match(new Set(names), new Set([
      'onRequest - llmGatewayAuth', 'onRequest - llmGatewayLimits', 'preValidation - llmGatewayValidation', 'preHandler - llmGatewayUsage',
    ]))
    const unnamed = names.filter((name) => /^(?:on|pre)\w+ - (?!llmGateway)/.test(name))
    t.same(unnamed, [], 'each hook of ours has its name')
    if (routes) t.ok(names.includes('handler - llmGatewayForward'), names.join('\n'))
  })
}
