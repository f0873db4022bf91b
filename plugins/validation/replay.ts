import { Readable } from 'node:stream'
import type { RequestPayload } from 'fastify'

/** The same bytes as a stream, for the body parser of a host's route. Fastify compares its length with the declared one. */
export function replay (bytes: Buffer): RequestPayload {
  const stream = new Readable({
    read () {
      this.push(bytes)
      this.push(null)
    },
  })
  return Object.assign(stream, { receivedEncodedLength: bytes.length })
}
