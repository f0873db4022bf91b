import type { IncomingHttpHeaders } from 'node:http'
import type { Endpoint } from '../protocols/index.js'
import { isLikeAscii, readParameters } from './parameters.js'
import { refused, type BodyRefusal } from './body-refusal.js'

/** JSON, or a form with its boundary. */
export type MediaType = { readonly kind: 'json' } | { readonly kind: 'form', readonly boundary: string }

const json: MediaType = { kind: 'json' }

/**
 * Reads the media type of a body from its headers. Decided here only, and never by which of the host's parsers would run: if parser and
 * validator read a content type differently, validation can be bypassed (CVE-2025-32442, CVE-2026-25223, CVE-2026-33806). JSON must be
 * UTF-8 (RFC 8259 8.1); a compressed body cannot be checked without decompressing it.
 */
export function readMediaType (endpoint: Endpoint, headers: IncomingHttpHeaders): MediaType | BodyRefusal {
  if (isEncoded(headers)) return refused('encoding', 'unsupported_encoding')
  const type = headers['content-type']
  if (type === 'application/json') return json
  if (type === undefined && !hasBody(headers)) return refused('empty', 'missing_body')
  return parseType(endpoint, type ?? '') ?? refused('media_type', 'unsupported_media_type', { expected: expected(endpoint) })
}

/** `identity` means no coding (RFC 9110 8.4). */
function isEncoded ({ 'content-encoding': coding }: IncomingHttpHeaders): boolean {
  return coding !== undefined && coding.trim().toLowerCase() !== 'identity'
}

function parseType (endpoint: Endpoint, text: string): MediaType | null {
  const essence = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+/.exec(text)?.[0] ?? ''
  const parameters = readParameters(text.slice(essence.length))
  if (parameters === null) return null
  switch (essence.toLowerCase()) {
    case 'application/json': return isUtf8(parameters) ? json : null
    case 'multipart/form-data': return endpoint.body === 'form' ? form(parameters) : null
    default: return null
  }
}

function isUtf8 (parameters: ReadonlyMap<string, string>): boolean {
  const { size } = parameters
  return size === 0 || (size === 1 && /^utf-?8$/i.test(parameters.get('charset') ?? ''))
}

/**
 * RFC 2046 5.1.1: 1 to 70 characters of a small set, here without those at which Rack cuts and which Jetty and others trim. Servers in Go
 * and Java prefer a `boundary*` (RFC 2231) to it; PHP, Rack and others take one from `xboundary=`, or a text between quotes; Tomcat decodes
 * an encoded word. Those in Java read fields in the `charset`.
 */
function form (parameters: ReadonlyMap<string, string>): MediaType | null {
  const { boundary = '', charset = 'utf-8', ...others } = Object.fromEntries(parameters)
  if (Object.keys(others).length > 0 || !isLikeAscii(charset)) return null
  return /^(?!.*(?:boundary=|=\?))[\w()+./:=?-]{1,70}$/i.test(boundary) ? { kind: 'form', boundary } : null
}

function hasBody (headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

function expected (endpoint: Endpoint): string {
  return endpoint.body === 'form' ? 'application/json or multipart/form-data with a boundary' : 'application/json'
}
