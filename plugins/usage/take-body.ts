import { AsyncResource } from 'node:async_hooks'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { collectBody, declaredLength } from '../core/body/collect-body.js'
import { refuse } from '../core/errors/refuse.js'
import { gatewayOf } from '../core/gateway.js'
import type { ModelCall } from '../core/call/model-call.js'

/** A promise for a large body. */
type Ask = () => void | Promise<void>

/**
 * Reads the body of a request if no plugin has read it and a host's mount would pass it on as a stream, so
 * that usage can be asked for in it. `ask` runs once `llm.body` is set, or cannot be on this route; then what is to be
 * sent replaces the stream. A body above the cap is refused.
 */
export function withBody (reply: FastifyReply, llm: ModelCall, ask: Ask, done: () => void): void {
  const { request } = reply
  const { body } = request
  if (llm.body.bytes !== null || !(body instanceof Readable)) {
    afterwards(llm, ask(), done)
    return
  }
  // Body events run in the connection's async context; the hooks after this one must run in the request's.
  const scope = new AsyncResource('llm-gateway.body')
  collectBody(body, declaredLength(request.headers['content-length']), llm, (error, bytes) => {
    if (error !== null) {
      refuse(reply, llm.endpoint.family, error)
      return
    }
    llm.body.bytes = bytes
    afterwards(llm, ask(), () => {
      const { outgoing } = llm.body
      request.body = Readable.from([outgoing ?? bytes], { objectMode: false })
      const { headers } = request.raw
      if (outgoing !== null && headers['content-length'] !== undefined) headers['content-length'] = String(outgoing.length)
      scope.runInAsyncScope(done)
    })
  }, gatewayOf(request.server))
}

/** Goes on once `asking` is done, unless the caller has left: its request is settled then. */
function afterwards (llm: ModelCall, asking: void | Promise<void>, goOn: () => void): void {
  if (asking === undefined) goOn()
  else {
    asking.then(() => {
      if (!llm.settled) goOn()
    })
  }
}
