import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { isEventStream } from '../core/reply/event-stream.js'
import type { ModelCall } from '../core/call/model-call.js'
import { listedIn } from './connection-header.js'
import type { Headers } from './raw-headers.js'

// Hop-by-hop headers (RFC 9110 7.6.1); what an upstream says of itself that is not true of this server; what browsers would remember for
// this server's name; what servers in front would obey, such as to serve a file; and redirections, because clients would take any key but
// that in `authorization` along.
const dropped = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings',
  'set-cookie', 'set-cookie2', 'alt-svc', 'www-authenticate', 'location', 'content-location', 'refresh',
  'strict-transport-security', 'public-key-pins', 'expect-ct', 'clear-site-data', 'nel', 'report-to', 'reporting-endpoints',
  'x-accel-redirect', 'x-accel-expires', 'x-accel-limit-rate', 'x-accel-charset', 'x-sendfile', 'x-lighttpd-send-file', 'x-reproxy-url',
])

// The bytes of a page are replaced, so headers that describe them are dropped, too.
const keptWithPage = new Set(['content-type', 'retry-after', 'retry-after-ms', 'x-should-retry', 'x-request-id', 'request-id'])

type Pass = (name: string, value: string | string[] | undefined) => void

/** What the host has set already. */
type HostHeaders = Pick<FastifyReply, 'getHeader' | 'hasHeader'>

/**
 * Passes the headers of an upstream's reply on as the caller gets them. Adds the request ids, and to streams what keeps
 * proxies from holding them back.
 */
export function passHeaders (headers: Headers, llm: ModelCall, reply: HostHeaders, pass: Pass): void {
  const page = isPage(llm.upstreamReply.status, headers)
  const listed = listedIn(headers.connection)
  // The length may differ from the upstream's: a chunk that only we asked for is removed, and a broken stream gets an error event.
  const isStream = isEventStream(headers) || (llm.stream && llm.upstreamReply.status < 300)
  const isOurs = llm.body.outgoing !== null || isStream
  for (const name in headers) {
    if ((name === 'content-length' && isOurs) || (name.startsWith('access-control-') && hasCors(reply))) continue
    if (page ? keptWithPage.has(name) : !dropped.has(name) && !listed.includes(name)) pass(name, headers[name])
  }
  passIds(headers, listed, llm, pass)
  // A cache in front recognises no other key than one in `authorization` (RFC 9111 3.5).
  if (llm.endpoint.method === 'GET' && headers['cache-control'] === undefined && !reply.hasHeader('cache-control')) {
    pass('cache-control', 'no-store')
  }
  // Gemini's may be a JSON array.
  if (isStream) {
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

/** True if the host has CORS headers of its own: it allowed an origin, or varies by it. */
function hasCors (reply: HostHeaders): boolean {
  return reply.hasHeader('access-control-allow-origin') || /\borigin\b/i.test(String(reply.getHeader('vary')))
}

/** The same as an object, for a host's functions. */
export function replyHeaders (headers: Headers, llm: ModelCall, reply: HostHeaders): Headers {
  const kept: Headers = {}
  passHeaders(headers, llm, reply, (name, value) => { kept[name] = value })
  return kept
}

/**
 * Node holds the head back until the first byte, but a caller should not wait for a model's first word to learn that its request was
 * accepted. Called when a body is piped into the response: only then has Fastify set its headers, and a host's `onSend` may have read
 * the body before. Not for a body that broke off meanwhile, whose failure can still be reported.
 */
export function flushHead (this: ServerResponse, { destroyed }: Readable): void {
  if (!destroyed) this.flushHeaders()
}

/** True for a transfer coding that nobody asked for (RFC 9112 7.4): the caller would get coded bytes without the header that says so. */
export function isCoded ({ 'transfer-encoding': coding }: Readonly<Record<string, unknown>>): boolean {
  return coding !== undefined && !/^\s*(?:chunked|identity)\s*$/i.test(String(coding))
}

/** True for a reply without a content coding. */
export function isUncompressed (headers: Headers): boolean {
  const coding = headers['content-encoding']
  return coding === undefined || /^\s*identity\s*$/i.test(String(coding))
}

/** False for a reply without a content type. The framework would add one to a buffer, but not to a stream. */
export function namesType ({ 'content-type': type }: Headers): boolean {
  return String(type).includes('/')
}

/** True for an HTML page instead of an error of the protocol, as some proxies in front of providers send. */
export function isPage (statusCode: number, headers: Readonly<Record<string, unknown>>): boolean {
  return statusCode >= 300 && /^\s*(?:text\/html|application\/xhtml)/i.test(String(headers['content-type']))
}
