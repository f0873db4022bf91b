/**
 * The path and query of what a request asks for. A client may write the whole address (RFC 9112 3.2.2), as it does to a proxy; the router
 * takes what follows its authority, and so does everybody behind. It stays where it does not name the same as `Host`, which it must:
 * each of two servers could go by another one.
 */
export function originForm (target: string, host: unknown): string {
  if (target[0] === '/') return target
  const [address = '', authority = ''] = /^https?:\/\/([^/?#\\@]+)(?=\/)/i.exec(target) ?? []
  return authority.toLowerCase() === String(host).toLowerCase() ? target.slice(address.length) : target
}
