/**
 * Where a mount sends a model request, without a version that stands in front of the request's own: `/v1/v1/messages` has
 * one too many. It comes from the mount's `rewritePrefix`, or from the base address of its upstream (docs/clients.md). `own`: the
 * canonical URL below the mount. What a host made of it otherwise stays.
 */
export function withOneVersion (dest: string, own: string): string {
  const path = withoutQuery(own)
  const doubled = path.slice(0, path.indexOf('/', 1)) + path
  const end = withoutQuery(dest).length
  return dest.endsWith(doubled, end) ? dest.slice(0, end - doubled.length) + path + dest.slice(end) : dest
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
