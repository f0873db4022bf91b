import { performance } from 'node:perf_hooks'
import { pipeline, Transform, type Readable, type TransformCallback } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { fromTransport } from '../core/errors/foreign.js'
import { StreamCutError } from '../core/errors/reply-errors.js'
import { isEventStream } from '../core/reply/event-stream.js'
import type { Gateway } from '../core/gateway.js'
import type { ModelCall } from '../core/call/model-call.js'
import { releaseHold } from '../core/call/request-life.js'
import { cutReply } from '../core/reply/cut-reply.js'
import type { ReplyTap } from '../core/types.js'

/**
 * Puts a tap on a reply that a mount of the host sends as a stream, if it has usage. Bytes pass in the turn in which they come;
 * `pipeline` passes backpressure and errors in both directions.
 */
export function watch (gateway: Gateway, reply: FastifyReply, llm: ModelCall, body: Readable): Readable {
  const { openTap } = llm
  const tap = openTap?.(reply.statusCode, reply.getHeaders()) ?? null
  if (openTap !== null) noteReply(llm, reply)
  if (tap === null) return cutWith(body, reply, llm)
  // The length may differ from the upstream's, because the extra event is removed. And a stream that is cut must not end exactly where
  // its length says.
  if (llm.body.outgoing !== null || llm.stream || isEventStream(reply.getHeaders())) reply.removeHeader('content-length')
  llm.holds += 1
  let isLeft = false
  // If the caller left, that is known before its stream is destroyed.
  body.once('close', () => {
    if (!body.readableEnded && !isLeft) llm.abortedBy ??= 'upstream'
  })
  const through = tapped(llm, tap)
  llm.exchange = {
    // The body is no longer read if the caller has left, or a host's hook replaced it.
    callerGone () {
      isLeft = !through.writableFinished && !through.destroyed
      if (isLeft) through.destroy()
    },
    get lastEventSeen () { return tap.lastEventSeen },
  }
  cutWith(through, reply, llm)
  pipeline(body, through, (error) => {
    if (error != null) breakOff(llm, tap, error, isLeft)
    releaseHold(gateway, reply.request, llm)
  })
  return through
}

/** Before the framework ends the reply, which would look as if the caller had left: over HTTP/2 that happens at once. */
function cutWith (body: Readable, reply: FastifyReply, llm: ModelCall): Readable {
  return body.once('error', () => {
    llm.abortedBy ??= 'upstream'
    cutReply(reply)
  })
}

/** Shows the tap each chunk, and passes on what it leaves of it. */
function tapped (llm: ModelCall, tap: ReplyTap): Transform {
  return new Transform({
    transform (chunk: Buffer, _encoding, done) {
      llm.times.lastChunkAt = performance.now()
      if (llm.times.firstChunkAt === 0) llm.times.firstChunkAt = llm.times.lastChunkAt
      llm.upstreamReply.bytes += chunk.length
      done(null, tap.push(chunk))
    },
    flush (done) {
      const rest = tap.end()
      const { whole } = tap
      if (typeof whole === 'boolean') conclude(whole, rest, done)
      else whole.then((isWhole) => conclude(isWhole, rest, done))
    },
  })
}

/** The same for a reply that a function of the host's sends whole. */
export function tapWhole (reply: FastifyReply, llm: ModelCall, body: string | Buffer): string | Buffer {
  const tap = llm.openTap?.(reply.statusCode, reply.getHeaders()) ?? null
  if (tap === null) return body
  noteReply(llm, reply)
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  llm.upstreamReply.bytes = bytes.length
  const left = Buffer.concat([tap.push(bytes), tap.end()].filter((piece) => piece !== null))
  return typeof body === 'string' ? left.toString() : left
}

function noteReply (llm: ModelCall, reply: FastifyReply): void {
  llm.upstreamReply.tapped = true
  llm.upstreamReply.status = reply.statusCode
  llm.times.headersAt = performance.now()
}

/** A stream that ends without its last event was cut, even if it ends cleanly. */
function conclude (isWhole: boolean, rest: Buffer | null, done: TransformCallback): void {
  done(isWhole ? null : new StreamCutError(), rest)
}

function breakOff (llm: ModelCall, tap: ReplyTap, error: Error, isLeft: boolean): void {
  if (isLeft || llm.abortedBy === 'client') {
    tap.abort('client')
    return
  }
  tap.abort('upstream')
  llm.abortedBy ??= 'upstream'
  const { code, outcome } = fromTransport(error)
  llm.errorCode = code === 'upstream_timeout' ? code : 'upstream_aborted'
  if (code === 'upstream_timeout') llm.outcome = outcome
}
