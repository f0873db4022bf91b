/** What becomes of a reply that never came, that its upstream broke off, or that could not be handed on. */
import { fromTransport } from '../core/errors/foreign.js'
import { gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { ReplyTap, StreamFacts } from '../core/types.js'
import { writeLog } from '../core/write-log.js'
import type { ExchangeContext } from './exchange-context.js'

/** For a stream that no tap read. */
const noFacts: StreamFacts = { id: null, model: null, createdAt: null, sequence: null }

/** Records that the upstream broke off, and returns the error for the caller. */
export function noteBroken ({ llm, request }: ExchangeContext, error: Error): GatewayError {
  const known = fromTransport(error)
  const failure = known.code === 'upstream_timeout' ? known : gatewayError('upstream_aborted')
  writeLog(request.log, 'warn', { err: error }, 'the upstream broke off its reply')
  llm.abortedBy ??= 'upstream'
  llm.errorCode = failure.code
  llm.outcome = failure.outcome
  return failure
}

/** The error event that ends such a stream, in the form of its protocol, with the ids that the stream had reported. */
export function lastEvent ({ endpoint, id }: ModelCall, error: GatewayError, tap: ReplyTap | null): Buffer {
  return Buffer.from(endpoint.streamError(error.facts(id), tap?.streamFacts ?? noFacts))
}

/** Records that a function of the host's that handles the reply threw. */
export function noteUndelivered ({ reply, request }: ExchangeContext, error: unknown): void {
  writeLog(request.log, 'error', { err: error }, 'a reply could not be passed on')
  reply.raw.destroy()
}

/** Records that nothing was sent. Not at once, because `send` recognises by `sentAt` that a mount's request came here. */
export function noteUnsent (llm: ModelCall): void {
  queueMicrotask(() => { llm.times.sentAt = 0 })
}
