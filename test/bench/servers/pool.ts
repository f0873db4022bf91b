/** The whole gateway on its own routes, with a pool of three members in the place of one upstream. */
import fastify from 'fastify'
import llmGateway from '../../../plugins/index.js'
import { gatewayOptions } from './gateway-options.js'
import { portOf, serve, settings } from './serve.js'

const { upstreams = {}, ...options } = gatewayOptions()
const names = ['main', 'second', 'third']
const members = Object.fromEntries(names.flatMap((name) => upstreams['main'] === undefined ? [] : [[name, upstreams['main']]]))
const groups = Object.fromEntries(Object.entries(options.groups).map(([id, group]) => [id, { ...group, upstream: 'pool' }]))

const app = fastify()
await app.register(llmGateway, {
  ...options, groups, upstreams: members, pools: { pool: { members: names } }, forward: { connections: settings.connections },
})
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
serve(portOf(app.server.address()), { metrics: async () => (await app.inject('/metrics')).body })
