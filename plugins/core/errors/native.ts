import type { FastifyReply, FastifyRequest } from 'fastify'
import { gatewayOf } from '../gateway.js'
import { identify } from '../identify.js'
import { ModelCall, modelCallOf } from '../model-call.js'
import { writeLog } from '../write-log.js'
import { fromForeign } from './foreign.js'
import { refuse } from './refuse.js'

/** Codes of a stream that ended before its end. */
const broken: ReadonlySet<unknown> = new Set(['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED', 'ECONNRESET', 'ABORT_ERR'])

/** An error handler for routes of ours: whatever was thrown, the caller reads it in its own protocol. */
export function nativeErrorHandler (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // A stream that a hook of the host's put in place of ours breaks when its caller leaves: that is no failure, and nobody is to be told.
  if (broken.has(Reflect.get(Object(error), 'code')) && modelCallOf(request)?.abortedBy === 'client') return reply
  const known = fromForeign(error, request, reply.statusCode)
  if (known.statusCode >= 500) writeLog(request.log, 'error', { err: error }, 'model request failed')
  // A hook of the host's may have failed before any of ours ran.
  const llm = identify(gatewayOf(request.server), request, reply)
  return llm instanceof ModelCall ? refuse(request, reply, llm.endpoint.family, known) : reply.code(known.statusCode).send(known)
}
