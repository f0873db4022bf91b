import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import llmGateway, { metrics, proxyOptions } from '../../plugins/index.js'
import { gatewayOptions } from '../helpers/gateway.js'

const upstream = 'http://127.0.0.1:9'
const gateway = (app: FastifyInstance) => app.register(llmGateway, { ...gatewayOptions(upstream), upstreams: {}, routes: false })
const mount = (app: FastifyInstance, more: object = {}) => app.register(httpProxy, {
  ...proxyOptions(), upstream, prefix: '/v1', rewritePrefix: '/v1', ...more,
})

t.test('a mount with proxyOptions() in an app without the gateway fails the start', async (t) => {
  const app = Fastify()
  t.teardown(async () => await app.close())
  mount(app)
  await t.rejects(async () => await app.ready(), {
    code: 'LLM_GATEWAY_OPTION', message: /^option proxyOptions needs the gateway in the same app.*\/v1$/,
  })
})

t.test('so does one of every path', async (t) => {
  for (const prefix of ['/', '']) {
    const app = Fastify()
    t.teardown(async () => await app.close())
    mount(app, { prefix, rewritePrefix: '/' })
    await t.rejects(async () => await app.ready(), { code: 'LLM_GATEWAY_OPTION', message: /the mount at \/$/ })
  }
})

t.test('so does one beside the scope that the gateway is in', async (t) => {
  const app = Fastify()
  t.teardown(async () => await app.close())
  app.register(async (scope) => { await gateway(scope) })
  mount(app)
  await t.rejects(async () => await app.ready(), /needs the gateway in the same app/)
})

t.test('before the gateway or after it, inside of a scope, or beside a single plugin, a mount starts', async (t) => {
  const apps: Readonly<Record<string, (app: FastifyInstance) => unknown>> = {
    after: (app) => { gateway(app); mount(app) },
    before: (app) => { mount(app); gateway(app) },
    inside: (app) => { gateway(app); app.register(async (scope) => { await mount(scope) }) },
    single: (app) => { app.register(metrics); mount(app) },
  }
  for (const [name, build] of Object.entries(apps)) {
    const app = Fastify()
    t.teardown(async () => await app.close())
    build(app)
    await t.resolves(async () => await app.ready(), name)
  }
})

t.test('where the mount has a preHandler of its own that one runs, and a missing gateway is told by the first request', async (t) => {
  const seen: string[] = []
  const app = Fastify()
  t.teardown(async () => await app.close())
  mount(app, { preHandler: async (request: { url: string }) => { seen.push(request.url) } })
  const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', payload: {} })
  t.equal(reply.statusCode, 500)
  t.match(reply.json(), { code: 'LLM_GATEWAY_OPTION' })
  t.same(seen, ['/v1/chat/completions'])
})

t.test('proxyOptions that is spread without being called says so', async (t) => {
  t.throws(() => ({ ...proxyOptions, upstream }), {
    code: 'LLM_GATEWAY_OPTION', message: 'option proxyOptions is a function: spread what it returns, ...proxyOptions()',
  })
})
