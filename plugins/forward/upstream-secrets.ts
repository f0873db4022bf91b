/** Secrets that an upstream was sent, by this request or another one, and that it could repeat. */
import { holdsSecret } from '../core/door/carriers.js'
import type { Call, Upstream } from '../core/upstream/upstream.js'
import { isCarrier } from '../core/url/query.js'

/** A shorter text may stand in a reply by chance. */
export const minSecretLength = 8

/** What the host's mount sends, if no upstream of ours is asked. */
export interface MountRequest {
  readonly headers: object
  readonly path: string
}

/**
 * `upstreams`: all that the request may go to. Members of a pool may be keys of one gateway, whose cache answers with an error that another
 * member's request was given. `calls`: what was sent so far, because a secret may have changed since.
 */
export function secretsOf (upstreams: readonly Upstream[], calls: readonly Call[], mount: MountRequest | null): string[] {
  const ofMount = mount === null ? [] : [...Object.entries(mount.headers).flatMap(inHeader), ...inQuery(mount.path.split('?')[1])]
  const secrets = [...upstreams.flatMap(known), ...calls.flatMap(sent), ...ofMount]
  // An upstream that repeats one leaves out the blanks around it, such as the end of the line in the file that it was read from.
  return secrets.map((secret) => secret.trim()).filter(({ length }) => length >= minSecretLength)
}

function known ({ secret, headers, query }: Upstream): string[] {
  return [secret.known() ?? [], headers.flatMap(inHeader), inQuery(query)].flat()
}

/** The caller's own secret need not be kept from the caller. */
function sent ({ upstream, headers }: Call): string[] {
  if (upstream.forwards) return []
  return headers.flatMap(([name, value]) => inHeader([name === upstream.credentialHeader ? 'authorization' : name, value]))
}

/** Secrets in JSON, by which other gateways are told where to send a request and with which key. */
const inJson = /(?:key|token|secret|authorization)"\s*:\s*"(?:bearer )?([^"]+)/gi

/** Without its scheme. */
function inHeader ([name, value]: readonly [string, unknown]): string[] {
  if (!holdsSecret(name)) return []
  const text = String(value)
  return [text.replace(/^\S+ +/, ''), ...Array.from(text.matchAll(inJson), (found) => String(found[1]))]
}

function inQuery (query: string | undefined): string[] {
  return [...new URLSearchParams(query)].flatMap(([name, value]) => isCarrier(name) ? [value] : [])
}
