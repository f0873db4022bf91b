import type { Context } from '@opentelemetry/api'
import type {} from '@fastify/reply-from'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { otelApi } from '../core/telemetry/otel-api.js'

/**
 * On a mount that nobody adapted, makes `reply.from` send our trace in the place of the caller's, and within our span's
 * context, whichever the handler runs in. A mount forwards the headers of a request as they are, so the request has ours
 * from here on. `headers` as in `llm.trace.headers`.
 */
export function traceHostMount ({ raw }: FastifyRequest, reply: FastifyReply, own: Context, headers: Readonly<Record<string, string>>): void {
  if (!('from' in reply)) return
  const { from } = reply
  reply.from = (source, options) => {
    delete raw.headers['traceparent']
    delete raw.headers['tracestate']
    delete raw.headers['baggage']
    Object.assign(raw.headers, headers)
    return otelApi().context.with(own, from, reply, source, options)
  }
}
