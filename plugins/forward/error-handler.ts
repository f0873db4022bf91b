import type { FastifyReply, FastifyRequest } from 'fastify'
import { gatewayOf } from '../core/gateway.js'
import { identify } from '../core/call/identify.js'
import { ModelCall } from '../core/call/model-call.js'
import { writeLog } from '../core/write-log.js'
import { fromForeign } from '../core/errors/foreign.js'
import { refuse } from '../core/errors/refuse.js'

/** The error handler of our routes: whatever was thrown, the caller gets it in the format of its protocol. */
export function nativeErrorHandler (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = fromForeign(error, request, reply.statusCode)
  if (known.statusCode >= 500) writeLog(request.log, 'error', { err: error }, 'model request failed')
  // A hook of the host may have failed before any of ours ran.
  const llm = identify(gatewayOf(request.server), request, reply)
  return llm instanceof ModelCall ? refuse(reply, llm.endpoint.family, known) : reply.code(known.statusCode).send(known)
}
