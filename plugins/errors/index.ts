/**
 * Makes every failure on a model route speak the caller's protocol: what Fastify, a host's mount or an upstream's
 * silence would otherwise answer in their own shape (DESIGN 10). Also puts the request ids on every reply.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { identify } from '../identify.js'
import { LlmRequest, joinGateway } from '../request.js'
import { fromForeign } from './foreign.js'
import { errorHeaders } from './refuse.js'

async function errors (app: FastifyInstance): Promise<void> {
  const gateway = joinGateway(app)

  app.addHook('onRequest', (request, reply, done) => {
    identify(gateway, request, reply)
    done()
  })

  app.addHook('onSend', (request, reply, payload, done) => {
    const { llm } = request
    if (llm === null) {
      done(null, payload)
      return
    }
    if (!reply.hasHeader('x-request-id')) reply.header('x-request-id', llm.id)
    if (!reply.hasHeader('request-id')) reply.header('request-id', reply.getHeader('x-request-id'))
    done(null, isForeign(llm, reply, payload) ? native(llm, request, reply, payload) : payload)
  })
}

/** An error that Fastify rendered: ours are marked by their code, an upstream's by its status, and a host's own shape is left alone. */
function isForeign (llm: LlmRequest, reply: FastifyReply, payload: unknown): payload is string {
  if (reply.statusCode < 400 || llm.errorCode !== null || llm.upstreamStatus !== 0) return false
  return typeof payload === 'string' && /^\{"(?:statusCode|message)":/.test(payload)
}

function native (llm: LlmRequest, request: FastifyRequest, reply: FastifyReply, payload: string): string {
  const error = fromForeign(JSON.parse(payload), request)
  llm.errorCode = error.code
  llm.outcome ??= error.outcome
  const body = JSON.stringify(llm.endpoint.family.errorBody(error.facts(llm.id)))
  reply.code(error.statusCode).headers(errorHeaders(error, llm.id)).header('content-length', Buffer.byteLength(body))
  return body
}

export default fp(errors, { fastify: '5.x', name: 'llm-gateway-errors' })
export { errors }
