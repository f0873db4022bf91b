/** What becomes of a reply that its upstream broke off, or that could not be handed on. */
import { fromTransport } from '../core/errors/foreign.js'
import { gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { ReplyTap, StreamFacts } from '../core/types.js'
import { writeLog } from '../core/write-log.js'
import type { ExchangeContext } from './exchange-context.js'

/** Nothing is known of a stream that nobody read. */
const untold: StreamFacts = { id: null, model: null, createdAt: null, sequence: null }

/** Writes down that the upstream broke off, and returns what its caller is told of it. */
export function noteBroken ({ llm, request }: ExchangeContext, error: Error): GatewayError {
  const known = fromTransport(error)
  const failure = known.code === 'upstream_timeout' ? known : gatewayError('upstream_aborted')
  writeLog(request.log, 'warn', { err: error }, 'the upstream broke off its reply')
  llm.abortedBy ??= 'upstream'
  llm.errorCode = failure.code
  llm.outcome = failure.outcome
  return failure
}

/** The last event of such a stream, in the words of its protocol, going on from what the stream told of itself. */
export function lastEvent ({ endpoint, id }: ModelCall, error: GatewayError, tap: ReplyTap | null): Buffer {
  return Buffer.from(endpoint.streamError(error.facts(id), tap === null ? untold : tap.streamFacts))
}

/** A function of the host's that had a say in the reply threw. */
export function noteUndelivered ({ reply, request }: ExchangeContext, error: unknown): void {
  writeLog(request.log, 'error', { err: error }, 'a reply could not be passed on')
  reply.raw.destroy()
}
