import type { FastifyReply, FastifyRequest } from 'fastify'
import { fromForeign } from './foreign.js'
import { refuse } from './refuse.js'

/** An error handler for routes of ours: whatever was thrown, the caller reads it in its own protocol. */
export function nativeErrorHandler (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = fromForeign(error, request)
  if (known.statusCode >= 500) request.log.error({ err: error }, 'model request failed')
  const { llm } = request
  return llm === null ? reply.code(known.statusCode).send(known) : refuse(request, reply, llm.endpoint.family, known)
}
