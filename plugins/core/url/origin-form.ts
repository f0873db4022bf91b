/**
 * The path and query of a request target. A client may send the whole address (RFC 9112 3.2.2), as to a proxy; the router reads what
 * follows its authority, and so do all later readers. The address stays as it is if its authority differs from `Host`, which is not
 * allowed: two servers could each go by another one.
 */
export function originForm (target: string, host: unknown): string {
  if (target[0] === '/') return target
  const [address = '', authority = ''] = /^https?:\/\/([^/?#\\@]+)(?=\/)/i.exec(target) ?? []
  return authority.toLowerCase() === String(host).toLowerCase() ? target.slice(address.length) : target
}
