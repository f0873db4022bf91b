import { performance } from 'node:perf_hooks'
import { pipeline, Transform, type Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { fromTransport } from '../core/errors/foreign.js'
import { releaseHold, type Gateway } from '../core/gateway.js'
import type { ModelCall } from '../core/model-call.js'
import type { OpenTap, ReplyTap } from '../core/types.js'

/**
 * Puts a tap on a reply that a mount of the host sends as a stream. Bytes pass in the turn in which they come;
 * `pipeline` carries backpressure and breaks both ways (facts/fastify.md 0.8).
 */
export function watch (
  gateway: Gateway, request: FastifyRequest, reply: FastifyReply, llm: ModelCall, openTap: OpenTap, body: Readable
): Readable {
  llm.tapped = true
  llm.upstreamStatus = reply.statusCode
  llm.times.headersAt = performance.now()
  const tap = openTap(reply.statusCode, reply.getHeaders())
  if (tap === null) return body
  // Its bytes may not be what the upstream counted: an event that only the gateway asked for is taken out.
  if (llm.outgoing !== null) reply.removeHeader('content-length')
  llm.holds += 1
  let isLeft = false
  // The caller's own leaving is known before its stream is taken down.
  body.once('close', () => {
    if (!body.readableEnded && !isLeft) llm.abortedBy ??= 'upstream'
  })
  const through = new Transform({
    transform (chunk: Buffer, _encoding, done) {
      llm.times.lastChunkAt = performance.now()
      if (llm.times.firstChunkAt === 0) llm.times.firstChunkAt = llm.times.lastChunkAt
      llm.replyBytes += chunk.length
      done(null, tap.push(chunk))
    },
    flush (done) {
      done(null, tap.end())
    },
  })
  // Nobody reads on where the caller has left, or a host's hook put something else in its place.
  reply.raw.once('close', () => {
    isLeft = !through.writableFinished && !through.destroyed
    if (isLeft) through.destroy()
  })
  pipeline(body, through, (error) => {
    if (error != null) breakOff(llm, tap, error, isLeft)
    releaseHold(gateway, request, llm)
  })
  return through
}

function breakOff (llm: ModelCall, tap: ReplyTap, error: Error, isLeft: boolean): void {
  if (isLeft || llm.abortedBy === 'client') {
    tap.abort('client')
    return
  }
  tap.abort('upstream')
  const { code, outcome } = fromTransport(error)
  llm.errorCode = code === 'upstream_timeout' ? code : 'upstream_aborted'
  if (code === 'upstream_timeout') llm.outcome = outcome
}
