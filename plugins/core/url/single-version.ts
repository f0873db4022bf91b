import { lengthBeforeVersions } from './segments.js'

/**
 * Where a mount sends a model request, without versions that stand in front of the request's own: `/v1/v1/messages` has one too many,
 * and so has `/v1/v1beta/models`. They come from the mount's `rewritePrefix`, or from the base address of its upstream (docs/clients.md).
 * `own`: the canonical URL below the mount. What a host made of it otherwise stays.
 */
export function withOneVersion (dest: string, own: string): string {
  const path = withoutQuery(own)
  const start = withoutQuery(dest).length - path.length
  if (start <= 0 || !dest.startsWith(path, start)) return dest
  return dest.slice(0, lengthBeforeVersions(dest.slice(0, start))) + dest.slice(start)
}

type BaseOf<Request> = (request: Request, base: string) => string

/**
 * For what is sent without the version that its mount has in its base address: reply-from refuses what is not below that. `given` is the
 * mount's own way to say the base, which may be several or none.
 */
export function baseWithoutVersions<Request> (given: BaseOf<Request> = (_request, base) => base): BaseOf<Request> {
  return (request, base) => {
    const told = given(request, base)
    if (typeof told !== 'string' || !URL.canParse(told)) return told
    const url = new URL(told)
    url.pathname = url.pathname.slice(0, lengthBeforeVersions(url.pathname.replace(/\/+$/, '')))
    return url.href
  }
}

/** A URL without its query. */
export function withoutQuery (url: string): string {
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

/** The query of a URL with its `?`, or empty. */
export function queryOf (url: string): string {
  return url.slice(withoutQuery(url).length)
}
