/** A bare `@fastify/http-proxy` with its defaults: what people have before they add anything. */
import httpProxy from '@fastify/http-proxy'
import fastify from 'fastify'
import { portOf, serve, settings } from './serve.js'

const app = fastify()
await app.register(httpProxy, { upstream: settings.upstream })
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
serve(portOf(app.server.address()))
