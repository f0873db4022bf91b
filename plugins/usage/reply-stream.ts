import { Readable } from 'node:stream'
import { ReadableStream } from 'node:stream/web'
import type { FastifyReply } from 'fastify'

/**
 * A reply's payload as a stream, null if it is none. Status and headers of a `Response` (from `fetch`) are set on the reply, as
 * Fastify would do later.
 */
export function streamOf (payload: unknown, reply: FastifyReply): Readable | null {
  if (payload instanceof Readable) return payload
  if (payload instanceof ReadableStream) return Readable.fromWeb(payload)
  if (!(payload instanceof Response) || payload.body === null || payload.bodyUsed) return null
  reply.code(payload.status)
  for (const [name, value] of payload.headers) reply.header(name, value)
  return Readable.fromWeb(payload.body)
}
