import type { UpstreamOptions } from './options.js'

/** `v4`, `v1beta1`: what providers call their versions. */
const version = /^v\d+(?:[a-z]+\d*)?$/
/** Those that are dropped at the end of a base, and put behind it again. */
const ours = /^(?:v1|v1beta|v1alpha)$/

/** What an operator should look at: a base that holds a version of its own, behind which another one is put. Null for nothing. */
export function addressWarning ({ url, path }: Pick<UpstreamOptions, 'url' | 'path'>): string | null {
  if (path !== undefined) return null
  const segments = new URL(url).pathname.split('/').filter((segment) => segment !== '')
  const last = segments.at(-1) ?? ''
  const own = segments.find((segment, i) => version.test(segment) && segment !== 'v1' && !(i === segments.length - 1 && ours.test(last)))
  if (own === undefined) return null
  return `holds ${own}, which looks like a version, and another one is put behind it: say path: verbatim where the provider has none there, or path: canonical`
}
