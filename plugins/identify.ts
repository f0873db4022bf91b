/**
 * From a raw request to its `LlmRequest`, once: by `rewriteUrl` before routing, by the first hook that asks, or carried
 * over from a first pass through the router.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LlmRequest, beginRequest, type Gateway } from './request.js'
import type { Refused, Resolve } from './paths/resolve.js'

const kLlm = Symbol('fastify-llm-gateway.request')

interface Marked extends IncomingMessage {
  /** Undefined: not looked at. Null: none of ours. */
  [kLlm]?: LlmRequest | Refused | null
  originalUrl?: string
}

/** Reads the URL of a raw request, once: the answer stays with it over a second pass through the router. */
export function readUrl (resolve: Resolve, raw: Marked): LlmRequest | Refused | null {
  const known = raw[kLlm]
  if (known !== undefined) return known
  const resolution = resolve(raw.method ?? '', raw.url ?? '', raw.headers)
  const read = resolution?.kind === 'endpoint' ? new LlmRequest(resolution) : resolution
  raw[kLlm] = read
  if (read !== null && raw.originalUrl !== undefined) raw.originalUrl = read.url
  return read
}

/**
 * The model request that this request is, begun; a refusal, for whoever answers it; or null for a request of the host.
 * Safe to call from any hook and more than once.
 */
export function identify (gateway: Gateway, request: FastifyRequest, reply: FastifyReply): LlmRequest | Refused | null {
  const read = readUrl(gateway.resolve, request.raw)
  if (read instanceof LlmRequest) beginRequest(gateway, request, reply, read)
  // Contexts that the host made before this package was registered do not have the decorator's null.
  else request.llm = null
  return read
}
