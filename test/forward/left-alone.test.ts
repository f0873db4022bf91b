import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { gatewayOptions } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { chat, headers, startSeam } from './mount-hosts.js'

t.test('a path under the mount that no endpoint has is refused, or forwarded where the host says so', async (t) => {
  const upstream = await startUpstream(t)
  for (const [options, status] of [[{}, 404], [{ unknown: 'forward' as const }, 200]] as const) {
    const app = await startSeam(t, upstream.url, {}, options)
    await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
    upstream.respond = () => ({ body: { ok: true } })
    t.equal((await app.inject({ method: 'GET', url: '/v1/files', headers })).statusCode, status)
    for (const action of ['batchGenerateContent', 'predict', 'predictLongRunning']) {
      t.equal((await app.inject({ method: 'POST', url: `/v1/models/m:${action}`, headers, payload: {} })).statusCode, status, action)
    }
    for (const path of ['models/m:generatecontent', 'tunedmodels/m:generatecontent', 'tunedModels/m:generateContent:predict']) {
      const misspelled = await app.inject({ method: 'POST', url: `/v1/${path}`, headers, payload: {} })
      t.match([misspelled.statusCode, misspelled.json()], [404, { error: { message: /^Unknown action/ } }], path)
    }
    t.equal((await app.inject({ method: 'POST', url: '/v1/chat%2fcompletions', headers, payload: chat })).statusCode, 400)
  }
})

t.test('a model request does not wait for the connections of what is left alone', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startSeam(t, upstream.url, {}, { unknown: 'forward', connections: 1 })
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  let release = (): void => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  upstream.queue({ body: { ok: true }, before: async () => await held })
  const other = app.inject({ method: 'GET', url: '/v1/files', headers })
  await upstream.requests.next()
  t.equal((await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })).statusCode, 200)
  release()
  t.equal((await other).statusCode, 200)
})

t.test('an app closes while an upstream is silent to a request left alone whose caller has gone', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', ...proxyOptions({ unknown: 'forward' }) })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  upstream.queue({ stallAt: 'headers' })
  const caller = new AbortController()
  const asked = fetch(`${url}/v1/files`, { headers, signal: caller.signal })
  await upstream.arrivals.next()
  caller.abort()
  await t.rejects(asked)
  await app.close()
})

t.test('a hook that makes a model request of what is left alone has it refused: nobody was asked for a key', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url, { routes: false }))
  app.addHook('preHandler', async ({ raw }) => { if (raw.url === '/v1/unknown') raw.url = '/v1/models' })
  await app.register(httpProxy, { ...proxyOptions({ unknown: 'forward' }), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  // Before and after the mount's first request, which shows that it reaches its transport.
  for (const seen of [0, 1]) {
    t.equal((await app.inject('/v1/unknown')).statusCode, 500)
    t.equal(upstream.seen.length, seen)
    t.equal((await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })).statusCode, 200)
  }
})
