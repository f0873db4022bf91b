import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { isEventStream } from '../core/reply/event-stream.js'
import type { ModelCall } from '../core/call/model-call.js'
import { listedIn } from './connection-header.js'
import type { Headers } from './raw-headers.js'

// Hop-by-hop headers (RFC 9110 7.6.1), what an upstream says of itself that is not true of this server, what browsers would keep for its
// whole name, what servers in front of this one take for its orders: to serve a file, or a place that callers are kept from; and where else
// a caller is to ask, as clients take any key but `authorization` there along.
const dropped = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings',
  'set-cookie', 'set-cookie2', 'alt-svc', 'www-authenticate', 'location', 'content-location', 'refresh',
  'strict-transport-security', 'public-key-pins', 'expect-ct', 'clear-site-data', 'nel', 'report-to', 'reporting-endpoints',
  'x-accel-redirect', 'x-accel-expires', 'x-accel-limit-rate', 'x-accel-charset', 'x-sendfile', 'x-lighttpd-send-file', 'x-reproxy-url',
])

// A page's bytes are replaced, so what describes them goes too.
const keptWithPage = new Set(['content-type', 'retry-after', 'retry-after-ms', 'x-should-retry', 'x-request-id', 'request-id'])

type Pass = (name: string, value: string | string[] | undefined) => void

/**
 * Passes the headers of an upstream's reply on as the caller gets them. Adds the request ids, and to event streams what
 * keeps proxies from holding them back.
 */
export function passHeaders (headers: Headers, llm: ModelCall, reply: FastifyReply | null, pass: Pass): void {
  const page = isPage(llm.upstreamReply.status, headers)
  const listed = listedIn(headers.connection)
  // Its bytes may not be what the upstream counted: a chunk that only we asked for is taken out, and a stream that broke off is told so.
  const isMetered = llm.stream && llm.openTap !== null && llm.upstreamReply.status < 300
  const isOurs = llm.body.outgoing !== null || isMetered || isEventStream(headers)
  for (const name in headers) {
    if ((name === 'content-length' && isOurs) || (name.startsWith('access-control-') && hasCors(reply))) continue
    if (page ? keptWithPage.has(name) : !dropped.has(name) && !listed.includes(name)) pass(name, headers[name])
  }
  passIds(headers, listed, llm, pass)
  // A cache in front knows of no other key than one in `authorization` (RFC 9111 3.5).
  if (llm.endpoint.method === 'GET' && headers['cache-control'] === undefined && reply?.hasHeader('cache-control') !== true) {
    pass('cache-control', 'no-store')
  }
  if (isEventStream(headers)) {
    pass('cache-control', 'no-cache')
    pass('x-accel-buffering', 'no')
  }
}

function passIds (headers: Headers, listed: readonly string[], llm: ModelCall, pass: Pass): void {
  const own = listed.includes('x-request-id') ? undefined : headers['x-request-id']
  const other = listed.includes('request-id') ? undefined : headers['request-id']
  const id = own ?? other
  llm.upstreamReply.requestId = id === undefined ? null : String(id)
  if (own === undefined) pass('x-request-id', id ?? llm.id)
  if (other === undefined) pass('request-id', id ?? llm.id)
}

/** Which pages may read a reply is the host's to say, where it does: it named those that may, or told caches that it depends on them. */
function hasCors (reply: FastifyReply | null): boolean {
  return reply?.hasHeader('access-control-allow-origin') === true || /\borigin\b/i.test(String(reply?.getHeader('vary')))
}

/** The same as an object, for a host's functions. */
export function replyHeaders (headers: Headers, llm: ModelCall, reply: FastifyReply | null = null): Headers {
  const kept: Headers = {}
  passHeaders(headers, llm, reply, (name, value) => { kept[name] = value })
  return kept
}

/**
 * Node holds the head back until the first byte; a caller should not wait for a model's first word to learn that its request was
 * taken. For what is piped into a response: Fastify has set its headers only then, and a host's `onSend` may read the body before.
 * The failure of a body that broke off meanwhile can still be told.
 */
export function flushHead (this: ServerResponse, { destroyed }: Readable): void {
  if (!destroyed) this.flushHeaders()
}

/** Packed on its way, which nobody asked for (RFC 9112 7.4): it would reach its caller packed, and without the header that says so. */
export function isCoded ({ 'transfer-encoding': coding }: Readonly<Record<string, unknown>>): boolean {
  return coding !== undefined && !/^\s*(?:chunked|identity)\s*$/i.test(String(coding))
}

/** Its bytes are what they say. */
export function isUncompressed (headers: Headers): boolean {
  const coding = headers['content-encoding']
  return coding === undefined || /^\s*identity\s*$/i.test(String(coding))
}

/** Where it does not, the framework gives whole bytes a type that their upstream did not say, and a stream none. */
export function namesType ({ 'content-type': type }: Headers): boolean {
  return String(type).includes('/')
}

/** A page for people where the caller's library expects its protocol: some proxies in front of providers answer so. */
export function isPage (statusCode: number, headers: Readonly<Record<string, unknown>>): boolean {
  return statusCode >= 300 && /^\s*(?:text\/html|application\/xhtml)/i.test(String(headers['content-type']))
}
