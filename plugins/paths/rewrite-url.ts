import { isPreflight } from '../core/door/arrival.js'
import { unknownUrl } from '../core/door/refuse-url.js'
import { readBeside } from '../core/host/rewritten-send.js'
import { forgetUrl, keepOut, readUrl, type RawRequest } from '../core/call/identify.js'
import { ModelCall } from '../core/call/model-call.js'
import { isUnknown, type UrlRefusal } from '../core/url/refusal.js'
import { createResolve, type Resolve } from '../core/url/resolve.js'
import { beforeVersions } from '../core/url/segments.js'
import { queryOf, withoutQuery } from '../core/url/query.js'
import { setAside } from './ill-formed.js'
import { checkPathOptions } from './options.js'

export interface RewriteUrlOptions {
  /**
   * Path below which the model endpoints are served, such as `/llm`.
   * @defaultValue none
   */
  readonly prefix?: string
  /**
   * Where a path has a version segment (or the prefix) but is no known endpoint, or, without a prefix, is one that a provider has without a
   * version: `leave` the `key` in its query, for a host that serves such paths and takes one, or `refuse` it.
   * @defaultValue `refuse`
   */
  readonly unknown?: 'leave' | 'refuse'
}

/**
 * For hosts that own the Fastify constructor: `Fastify({ rewriteUrl: createRewriteUrl() })`. Normalizes before routing, which saves the
 * second pass of the `paths` plugin, and keeps `?key=` out of Fastify's own request log, whose first line is written before any hook runs.
 * Throws `LLM_GATEWAY_OPTION`.
 */
export function createRewriteUrl (options: RewriteUrlOptions = {}): (raw: RawRequest) => string {
  checkPathOptions('createRewriteUrl', options)
  const { prefix = '', unknown = 'refuse' } = options
  const mount = beforeVersions(prefix)
  const resolve = createResolve(mount)
  // Outside of a prefix all is the host's.
  const isOurs = mount === '' && unknown === 'refuse'
  return (raw) => {
    const read = readUrl(resolve, raw) ?? (isOurs ? besideVersions(raw) : null)
    if (read instanceof ModelCall) return read.url
    // The app's own plugins may have another prefix or a less strict router.
    if (read === null || isUnknown(read)) forgetUrl(raw, read)
    if (isPreflight(String(raw.method), raw.headers)) return preflightUrl(resolve, raw, read)
    if (read === null || (isUnknown(read) && unknown === 'leave')) return String(raw.url)
    if (read.code === 'ambiguous_path' || read.code === 'crowded_query') return setAside(raw, read)
    keepOut(raw, read)
    return read.url
  }
}

/** A provider's path without a version, such as that of its sockets, whose clients have their key in the query. */
function besideVersions (raw: RawRequest): UrlRefusal | null {
  return readBeside(withoutQuery(String(raw.url))) === null ? null : unknownUrl(raw)
}

/** A browser's preflight has the URL of the later request, including `?key=`. */
function preflightUrl (resolve: Resolve, raw: RawRequest, found: UrlRefusal | null): string {
  const given = String(raw.url)
  const read = resolve(String(raw.headers['access-control-request-method']), given, raw.headers) ?? found
  if (read === null) return given
  const url = withoutQuery(given) + queryOf(read.url)
  keepOut(raw, { url })
  return url
}
