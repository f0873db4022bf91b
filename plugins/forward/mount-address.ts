/** What of an adapted mount tells where it sends a request. */
export interface MountAddress {
  readonly upstream?: unknown
  readonly rewritePrefix?: unknown
  readonly replyOptions?: unknown
}

export interface MountProblem {
  /** Nothing that it sends arrives. */
  readonly isFatal: boolean
  readonly text: string
}

/**
 * What http-proxy and reply-from would refuse of a mount's requests, each in words that lead nobody to its options: the one what does
 * not stay below `rewritePrefix`, the other what does not stay below the path of `upstream`. `prefix`: where the mount stands.
 */
export function mountProblem (prefix: string, { upstream, rewritePrefix, replyOptions }: MountAddress): MountProblem | null {
  if (typeof upstream !== 'string' || !URL.canParse(upstream) || typeof Object(replyOptions).getUpstream === 'function') return null
  const { pathname } = new URL(upstream)
  const rewrite = typeof rewritePrefix === 'string' && rewritePrefix !== '' ? rewritePrefix : pathname
  if (prefix.endsWith('/') && !rewrite.endsWith('/')) {
    return {
      isFatal: true,
      text: `has a rewritePrefix or an upstream that ends in ${rewrite}, where http-proxy sends nothing: it must end in ${rewrite}/`,
    }
  }
  const base = pathname.replace(/\/*$/, '/')
  if (`${rewrite}/`.startsWith(base)) return null
  return {
    isFatal: false,
    text: `has an upstream with the path ${base} and the rewritePrefix ${rewrite}: reply-from refuses what is not below it, with 500`,
  }
}
