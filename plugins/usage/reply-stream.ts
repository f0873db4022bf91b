import { Readable } from 'node:stream'
import { ReadableStream } from 'node:stream/web'
import type { FastifyReply } from 'fastify'

/**
 * What a reply sends as a stream, null where it sends none. Of a `Response`, as `fetch` gives it, the head becomes that of the reply, as
 * the framework would have it later.
 */
export function streamOf (payload: unknown, reply: FastifyReply): Readable | null {
  if (payload instanceof Readable) return payload
  if (payload instanceof ReadableStream) return Readable.fromWeb(payload)
  if (!(payload instanceof Response) || payload.body === null || payload.bodyUsed) return null
  reply.code(payload.status)
  for (const [name, value] of payload.headers) reply.header(name, value)
  return Readable.fromWeb(payload.body)
}
