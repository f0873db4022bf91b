/** The same mount of `@fastify/http-proxy` as in `d`, with the gateway dropped into it. */
import httpProxy from '@fastify/http-proxy'
import fastify from 'fastify'
import llmGateway, { proxyOptions } from '../../../plugins/index.js'
import { gatewayOptions } from './gateway-options.js'
import { portOf, serve, settings } from './serve.js'

const app = fastify()
await app.register(llmGateway, { ...gatewayOptions(), routes: false })
await app.register(httpProxy, { upstream: settings.upstream, ...proxyOptions({ connections: settings.connections }) })
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
serve(portOf(app.server.address()), { metrics: async () => (await app.inject('/metrics')).body })
