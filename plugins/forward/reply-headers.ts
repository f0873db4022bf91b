import type { LlmRequest } from '../request.js'

// Hop-by-hop headers (RFC 9110 7.6.1), and what an upstream says of itself that is not true of this server.
const dropped = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings',
  'set-cookie', 'alt-svc',
])

// A page's bytes are replaced, so what describes them goes too.
const keptWithPage = new Set(['content-type', 'retry-after', 'retry-after-ms', 'x-should-retry', 'x-request-id', 'request-id'])

type Headers = Record<string, string | string[] | undefined>

/** The headers of an upstream's reply as the caller gets them. Adds the request ids, and to event streams what keeps proxies from holding them back. */
export function replyHeaders (headers: Headers, llm: LlmRequest): Headers {
  const page = isPage(llm.upstreamStatus, headers)
  const listed = headers.connection === undefined ? [] : String(headers.connection).toLowerCase().split(/[\s,]+/)
  const kept: Headers = {}
  for (const name in headers) {
    if (page ? keptWithPage.has(name) : !dropped.has(name) && !listed.includes(name)) kept[name] = headers[name]
  }
  const id = kept['x-request-id'] ?? kept['request-id']
  llm.upstreamRequestId = id === undefined ? null : String(id)
  kept['x-request-id'] ??= id ?? llm.id
  kept['request-id'] ??= id ?? llm.id
  if (isEventStream(headers)) {
    kept['cache-control'] = 'no-cache'
    kept['x-accel-buffering'] = 'no'
  }
  // Its bytes may not be what the upstream counted: a chunk that only we asked for is taken out.
  if (llm.outgoing !== null) delete kept['content-length']
  return kept
}

export function isEventStream (headers: Readonly<Record<string, unknown>>): boolean {
  return /^\s*text\/event-stream\s*(?:;|$)/i.test(String(headers['content-type']))
}

/** A page for people where the caller's library expects its protocol: some proxies in front of providers answer so. */
export function isPage (statusCode: number, headers: Readonly<Record<string, unknown>>): boolean {
  return statusCode >= 400 && /^\s*(?:text\/html|application\/xhtml)/i.test(String(headers['content-type']))
}
