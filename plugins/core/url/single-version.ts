import { withoutQuery } from './query.js'
import { lengthBeforeVersions } from './segments.js'

/**
 * The address that a mount sends a model request to, without versions in front of the request's own: `/v1/v1/messages` has one too many,
 * and so has `/v1/v1beta/models`. They come from the mount's `rewritePrefix`, or from the base address of its upstream (docs/clients.md).
 * `own`: the canonical URL below the mount. Other changes by the host are kept.
 */
export function withOneVersion (dest: string, own: string): string {
  const path = withoutQuery(own)
  const start = withoutQuery(dest).length - path.length
  if (start <= 0 || !dest.startsWith(path, start)) return dest
  return dest.slice(0, lengthBeforeVersions(dest.slice(0, start))) + dest.slice(start)
}

type BaseOf<Request> = (request: Request, base: string) => string

/**
 * For a request that is sent without the version in its mount's base address: reply-from refuses addresses that are not below the base.
 * `given` is the mount's own way to choose the base, of which there may be several or none.
 */
export function baseWithoutVersions<Request> (given: BaseOf<Request> = (_request, base) => base): BaseOf<Request> {
  return (request, base) => {
    const target = given(request, base)
    if (typeof target !== 'string' || !URL.canParse(target)) return target
    const url = new URL(target)
    url.pathname = url.pathname.slice(0, lengthBeforeVersions(url.pathname.replace(/\/+$/, '')))
    return url.href
  }
}
