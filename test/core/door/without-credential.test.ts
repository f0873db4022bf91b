/** What has no credential and is answered all the same: a browser's preflight, and a client's look whether a server is there. */
import cors from '@fastify/cors'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import llmGateway, { proxyOptions } from '../../../plugins/index.js'
import { gatewayOptions } from '../../helpers/gateway.js'
import { askOnce } from '../../helpers/wire.js'
import { guarded, mount, startApp, startProvider } from './door-app.js'

t.test('preflights of endpoints are left to a route of the host\'s that answers them, though the gateway comes first', async (t) => {
  const hosts: Record<string, (app: FastifyInstance) => unknown> = {
    'CORS that is registered later': async (app) => await app.register(cors, { origin: 'https://page.example' }),
    'a route of its own': (app) => app.options('/v1/chat/completions', async (_, reply) => {
      await reply.code(204).header('access-control-allow-origin', 'https://page.example').send()
    }),
  }
  for (const [name, add] of Object.entries(hosts)) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => {
      await app.register(llmGateway, gatewayOptions(upstream.url))
      await add(app)
    })
    const reply = await askOnce(url, [
      'OPTIONS /v1/chat/completions HTTP/1.1', 'host: h', 'origin: https://page.example', 'access-control-request-method: POST',
    ])
    t.match([reply.status, reply.headers['access-control-allow-origin']], [204, 'https://page.example'], name)
    t.strictSame(came(), [])
  }
})

t.test('a client that checks whether a server is there is answered below an adapted mount, or by what that passes on', async (t) => {
  for (const [unknown, arrived] of [['refuse', 0], ['forward', 3]] as const) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => {
      await app.register(llmGateway, guarded)
      await mount(app, upstream.url, { ...proxyOptions({ unknown }), prefix: '/' })
    })
    for (const path of ['/', '/v1', '/v1beta/']) t.equal((await fetch(url + path, { method: 'HEAD' })).status, 200, `${unknown}: ${path}`)
    t.equal(came().length, arrived, unknown)
  }
})
