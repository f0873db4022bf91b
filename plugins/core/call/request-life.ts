/** The life of a model request: begun by whoever sees it first, and settled once nobody holds it any more. */
import { performance } from 'node:perf_hooks'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Gateway } from '../gateway.js'
import { setModelCall, type ModelCall } from './model-call.js'
import { outcomeOf } from './outcome.js'
import { endDeadSession } from '../reply/dead-session.js'
import { endWithConnection } from '../reply/pipelined-reply.js'

/** Counts it as active, and settles it when the reply's socket is done with it. */
export function beginRequest (gateway: Gateway, request: FastifyRequest, reply: FastifyReply, llm: ModelCall): void {
  setModelCall(request, llm)
  // Its caller left before a second pass through the router: it would be active for ever.
  if (llm.settled) return
  const begun = llm.request !== null
  llm.carryOn(request)
  if (begun) return
  gateway.recorder.started(llm)
  // Not `writableFinished`: it stays false under `inject`. Over HTTP/2 a reply that broke off finishes too.
  let finished = false
  reply.raw.on('finish', () => { finished = reply.raw.writableEnded })
  function closed (): void {
    llm.times.endedAt = performance.now()
    // What is finished was sent, even if a layer of the host's hides `headersSent` (`@fastify/express`).
    if (finished || reply.raw.headersSent) llm.status = reply.raw.statusCode
    if (!finished && llm.exchange?.lastEventSeen !== true) llm.abortedBy ??= 'client'
    llm.exchange?.callerGone()
    if (llm.request !== null) releaseHold(gateway, llm.request, llm)
  }
  endWithConnection(request.raw, reply.raw)
  endDeadSession(request.raw)
  // A caller that left while an earlier hook was waiting: its socket will not tell again. Over HTTP/2 there is none any more.
  if (reply.raw.destroyed || reply.raw.socket === undefined) closed()
  else reply.raw.on('close', closed)
}

/** Ends one party's hold; the last one settles the request, exactly once. */
export function releaseHold (gateway: Gateway, request: FastifyRequest, llm: ModelCall): void {
  llm.holds -= 1
  if (llm.holds > 0 || llm.settled) return
  llm.settled = true
  llm.outcome ??= outcomeOf(llm)
  gateway.settlement.run(llm, request)
  // References from here would keep whole dead requests alive over the next scavenge.
  llm.openTap = null
  llm.carryOn(null)
}
