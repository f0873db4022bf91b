import type { ModelCall } from '../core/model-call.js'
import type { Headers } from './raw-headers.js'

// Hop-by-hop headers (RFC 9110 7.6.1), what an upstream says of itself that is not true of this server, and what servers in
// front of this one take for its orders: to serve a file, or a place that callers are kept from.
const dropped = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings',
  'set-cookie', 'alt-svc',
  'x-accel-redirect', 'x-accel-expires', 'x-accel-limit-rate', 'x-accel-charset', 'x-sendfile', 'x-lighttpd-send-file', 'x-reproxy-url',
])

// A page's bytes are replaced, so what describes them goes too.
const keptWithPage = new Set(['content-type', 'retry-after', 'retry-after-ms', 'x-should-retry', 'x-request-id', 'request-id'])

type Pass = (name: string, value: string | string[] | undefined) => void

const none: readonly string[] = []

/**
 * Passes the headers of an upstream's reply on as the caller gets them. Adds the request ids, and to event streams what
 * keeps proxies from holding them back.
 */
export function passHeaders (headers: Headers, llm: ModelCall, pass: Pass): void {
  const page = isPage(llm.upstreamStatus, headers)
  const listed = headers.connection === undefined ? none : String(headers.connection).toLowerCase().split(/[\s,]+/)
  for (const name in headers) {
    // Its bytes may not be what the upstream counted: a chunk that only we asked for is taken out.
    if (name === 'content-length' && llm.outgoing !== null) continue
    if (page ? keptWithPage.has(name) : !dropped.has(name) && !listed.includes(name)) pass(name, headers[name])
  }
  passIds(headers, listed, llm, pass)
  if (isEventStream(headers)) {
    pass('cache-control', 'no-cache')
    pass('x-accel-buffering', 'no')
  }
}

function passIds (headers: Headers, listed: readonly string[], llm: ModelCall, pass: Pass): void {
  const own = listed.includes('x-request-id') ? undefined : headers['x-request-id']
  const other = listed.includes('request-id') ? undefined : headers['request-id']
  const id = own ?? other
  llm.upstreamRequestId = id === undefined ? null : String(id)
  if (own === undefined) pass('x-request-id', id ?? llm.id)
  if (other === undefined) pass('request-id', id ?? llm.id)
}

/** The same as an object, for a host's functions. */
export function replyHeaders (headers: Headers, llm: ModelCall): Headers {
  const kept: Headers = {}
  passHeaders(headers, llm, (name, value) => { kept[name] = value })
  return kept
}

export function isEventStream (headers: Readonly<Record<string, unknown>>): boolean {
  const type = headers['content-type']
  return type !== 'application/json' && /^\s*text\/event-stream\s*(?:;|$)/i.test(String(type))
}

/** A page for people where the caller's library expects its protocol: some proxies in front of providers answer so. */
export function isPage (statusCode: number, headers: Readonly<Record<string, unknown>>): boolean {
  return statusCode >= 400 && /^\s*(?:text\/html|application\/xhtml)/i.test(String(headers['content-type']))
}
