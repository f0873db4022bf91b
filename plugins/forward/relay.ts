import { fromTransport } from '../core/errors/foreign.js'
import { GatewayError, gatewayError } from '../core/errors/gateway-error.js'
import { refuse } from '../core/errors/refuse.js'
import { upstreamError } from './upstream-error.js'
import { writeLog } from '../core/write-log.js'
import type { UpstreamDispatcher } from './dispatcher.js'
import type { ExchangeContext, ExchangeReply, RelayContext } from './exchange-context.js'
import { isPage, passHeaders, replyHeaders } from './reply-headers.js'

/**
 * Sends a model request without reply-from, if no function of the host changes the request: on our own routes, and on
 * mounts that add nothing to it. The headers are then made once instead of four times. Same rules as `send`.
 */
export function relay (dispatcher: UpstreamDispatcher, context: RelayContext): void {
  dispatcher.send(context, answer)
  // Everything that depends on the parsed body has run by now.
  context.llm.body.json = undefined
}

function answer (error: Error | null, from: ExchangeReply | undefined, { llm, request, reply, rewriteHeaders }: ExchangeContext): void {
  const { family } = llm.endpoint
  if (from === undefined) {
    // The caller does not learn the address, name or certificate; the operator does. Logged as text, because the error object of a
    // certificate contains all of it.
    if (!(error instanceof GatewayError)) {
      writeLog(request.log, 'warn', { reason: String(error), code: Object(error).code }, 'the upstream gave no reply')
    }
    refuse(reply, family, fromTransport(error))
    return
  }
  const { statusCode, headers, body } = from
  if (rewriteHeaders === null) passHeaders(headers, llm, reply, (name, value) => { reply.header(name, value) })
  else {
    const kept = replyHeaders(headers, llm, reply)
    // One that returns nothing may have changed what it was given.
    reply.headers(rewriteHeaders(kept, request) ?? kept)
  }
  const failure = failureOf(statusCode, headers)
  if (failure === null && (request.method !== 'HEAD' || Buffer.isBuffer(body))) {
    reply.code(statusCode).send(body)
    return
  }
  if (!Buffer.isBuffer(body)) body.resume()
  if (failure !== null) refuse(reply, family, failure)
  // Over HTTP/2 Node ends a reply to HEAD with its head, and emits no end if a body is still to come.
  else reply.code(statusCode).send(null)
}

/** A reply that cannot be passed on as it is: a page for people, or a status that HTTP does not have. */
function failureOf (statusCode: number, headers: ExchangeReply['headers']): GatewayError | null {
  if (statusCode > 599) return gatewayError('upstream_invalid')
  return isPage(statusCode, headers) ? upstreamError(statusCode) : null
}
