import type { IncomingHttpHeaders } from 'node:http'
import { clientAddsTrace } from '../core/telemetry/outgoing-trace.js'
import { carriesCredential, overrides, tellsOtherBody } from '../core/door/carriers.js'
import { frontHeaders } from '../protocols/index.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Call, Header } from '../core/upstream/upstream.js'
import { listedIn } from './connection-header.js'
import { seal, type MarkedHeaders } from './exchange-context.js'

// Hop-by-hop headers (RFC 9110 7.6.1); `expect`, which this server has answered; where the caller came from, which is
// not for third parties; tenant data in baggage; and requests for a part of a reply, whose usage would be in another part.
const dropped = new Set([
  ...overrides,
  'connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings', 'expect',
  'forwarded', 'x-real-ip', 'baggage', 'range', 'if-range',
])

/** Callers use the same few names. Many other names, or long ones, are checked each time and do not fill this cache. */
const verdicts = new Map<string, boolean>()
const maxVerdicts = 1_000
const maxNameLength = 100

function isDropped (name: string): boolean {
  const known = verdicts.get(name)
  if (known !== undefined) return known
  const verdict = mustDrop(name)
  if (verdicts.size >= maxVerdicts) verdicts.clear()
  if (name.length <= maxNameLength) verdicts.set(name, verdict)
  return verdict
}

function mustDrop (given: string): boolean {
  const name = given.replaceAll('_', '-')
  return dropped.has(name) || carriesCredential(name) || frontHeaders.test(name) || tellsOtherBody(given)
}

/** The headers of a request as the upstream gets them: all but the dropped ones. A fresh object for each request. */
export function cleanHeaders (headers: IncomingHttpHeaders): MarkedHeaders {
  const clean: MarkedHeaders = {}
  for (const name in headers) {
    if (!isDropped(name)) clean[name] = headers[name]
  }
  return clean
}

const traceNames: readonly string[] = ['traceparent', 'tracestate']

/**
 * All headers of a request of our own routes, as undici writes them: names and values by turns. What `Connection`
 * lists is removed before anything of ours is added (a caller could strip that otherwise), and so are HTTP/2's pseudo headers.
 * The host is the upstream's; the transport writes the length.
 */
export function ownRequestHeaders (headers: IncomingHttpHeaders, llm: ModelCall, { upstream, body, headers: upstreams }: Call): string[] {
  const listed = listedIn(headers.connection)
  const left = ownsTrace(llm) ? [...listed, ...traceNames, ...Object.keys({ ...llm.trace?.headers })] : listed
  const own = ['host', upstream.host]
  for (const name in headers) {
    if (isPassed(name) && !left.includes(name) && !isAmong(upstreams, name)) append(own, name, headers[name])
  }
  if (body !== null && (headers['content-type'] === undefined || left.includes('content-type'))) {
    own.push('content-type', 'application/json')
  }
  for (const [name, value] of upstreams) own.push(name, value)
  const traced = llm.trace?.headers
  for (const name in traced) append(own, name, traced[name])
  return own
}

function isPassed (name: string): boolean {
  return name !== 'host' && name !== 'content-length' && name[0] !== ':' && !isDropped(name)
}

function append (headers: string[], name: string, value: string | string[] | undefined): void {
  if (Array.isArray(value)) value.forEach((each) => headers.push(name, each))
  // A host's own hook may have set a number.
  else if (value !== undefined) headers.push(name, String(value))
}

/** Adds our trace context to a mount's request, if a span of ours is active. */
export function addOwnHeaders (headers: MarkedHeaders, llm: ModelCall): MarkedHeaders {
  if (ownsTrace(llm)) {
    for (const name of traceNames) delete headers[name]
    Object.assign(headers, llm.trace?.headers)
  }
  return headers
}

/** Headers that a mount's function may set for any upstream: they describe the message and hold no secret. */
const aboutMessage = new Set(['content-type', 'content-length', 'accept', 'accept-encoding', 'accept-language', 'user-agent'])

/**
 * The headers that a mount's function left as they were `given` to it. What it adds or changes is meant for the upstream of the mount,
 * and may be a secret under any name, so it does not go to another upstream.
 */
export function unchanged (headers: IncomingHttpHeaders, given: IncomingHttpHeaders): MarkedHeaders {
  const own: MarkedHeaders = {}
  for (const name in headers) {
    if (headers[name] === given[name] || aboutMessage.has(name.toLowerCase())) own[name] = headers[name]
  }
  return own
}

/**
 * The headers of a mount's request as the upstream of the group gets them: with its host and its own headers, including its one
 * credential, instead of any that the mount set for its own upstream. The seal is removed.
 */
export function readdress (headers: MarkedHeaders, { upstream, headers: upstreams, body }: Call): MarkedHeaders {
  const own: MarkedHeaders = { host: upstream.host }
  for (const given in headers) {
    const name = given.toLowerCase()
    // The transport writes the length of a body that is read.
    if (name === 'host' || name === seal || (name === 'content-length' && body !== null)) continue
    if (!carriesCredential(name) && !isAmong(upstreams, name)) own[given] = headers[given]
  }
  for (const [name, value] of upstreams) own[name] = value
  return own
}

function isAmong (headers: readonly Header[], name: string): boolean {
  // A server behind may read `_` as `-`.
  return headers.some(([own]) => own.length === name.length && own.replaceAll('_', '-') === name.replaceAll('_', '-'))
}

/** The caller's trace context is replaced, by us or by an instrumentation of the HTTP client. */
function ownsTrace (llm: ModelCall): boolean {
  return (llm.trace?.headers ?? null) !== null || clientAddsTrace()
}
