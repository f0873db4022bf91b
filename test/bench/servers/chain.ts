/** The whole gateway on its own routes. */
import fastify from 'fastify'
import llmGateway from '../../../plugins/index.js'
import { gatewayOptions } from './gateway-options.js'
import { portOf, serve, settings } from './serve.js'

const app = fastify()
await app.register(llmGateway, { ...gatewayOptions(), forward: { connections: settings.connections } })
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
serve(portOf(app.server.address()), { metrics: async () => (await app.inject('/metrics')).body })
