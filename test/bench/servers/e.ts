/** Fastify and `reply.from` with the body as one raw Buffer: the least that a Fastify gateway can do. */
import replyFrom from '@fastify/reply-from'
import fastify from 'fastify'
import { portOf, serve, settings } from './serve.js'

const app = fastify({ bodyLimit: 64 * 1024 * 1024 })
await app.register(replyFrom, {
  base: settings.upstream,
  disableRequestLogging: true,
  undici: { connections: settings.connections, pipelining: 1 },
})
app.removeAllContentTypeParsers()
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
app.post('/*', (request, reply) => reply.from(request.raw.url, {
  body: request.body,
  contentType: request.headers['content-type'] ?? 'application/json',
}))
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
serve(portOf(app.server.address()))
