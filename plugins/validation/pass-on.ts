import { Readable } from 'node:stream'
import type {} from '@fastify/reply-from'
import type { FastifyReply, RequestPayload } from 'fastify'
import type { ModelCall } from '../core/model-call.js'

/** The same bytes as a stream, for the body parser of a host's route. Its length is what Fastify compares with the declared one. */
export function replay (bytes: Buffer): RequestPayload {
  const stream = new Readable({
    read () {
      this.push(bytes)
      this.push(null)
    },
  })
  return Object.assign(stream, { receivedEncodedLength: bytes.length })
}

/**
 * On a mount that nobody adapted, makes `reply.from` send the bytes as they were received, or `llm.outgoing` where a
 * later plugin made one: a body that a host's parser has read would be written anew, with other bytes
 * (facts/fastify.md 2.3). `request.body` stays what the host's parser made of it, and a body that the host itself gives
 * to `reply.from` is sent as it is. The bytes are looked up when `reply.from` is called, so it does not matter which
 * plugin's hook runs first; its length is counted then, too.
 */
export function sendBytesAsReceived (reply: FastifyReply, llm: ModelCall, contentType: string): void {
  if (!('from' in reply)) return
  const { from } = reply
  reply.from = (source, options = {}) => {
    const own = options.body === undefined ? { body: llm.outgoing ?? llm.body, contentType } : {}
    llm.json = undefined
    return from.call(reply, source, { ...options, ...own })
  }
}
