/** The options of an adapted mount that say where it sends a request. */
export interface MountAddress {
  readonly upstream?: unknown
  readonly rewritePrefix?: unknown
  readonly replyOptions?: unknown
}

export interface MountProblem {
  /** No request of the mount would arrive. */
  readonly isFatal: boolean
  readonly text: string
}

/**
 * Requests of a mount that http-proxy or reply-from would refuse, with errors that do not mention its options: http-proxy what is
 * not below `rewritePrefix`, reply-from what is not below the path of `upstream`. `prefix`: that of the mount.
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
