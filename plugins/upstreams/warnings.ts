import { BlockList, isIP } from 'node:net'
import { readPlainFileNow } from '../core/config/plain-file.js'
import { beforeVersions, segmentsOf } from '../core/url/segments.js'
import type { UpstreamOptions } from './options.js'
import { isSecret } from './secret.js'

/** Warnings for the operator; each begins with the name of the field. */
export function upstreamWarnings (upstream: UpstreamOptions): string[] {
  return [versionWarning(upstream), plaintextWarning(upstream), fileWarning(upstream)].filter((warning) => warning !== null)
}

/** A warning and no error, because the file may be mounted later. */
function fileWarning ({ credential }: UpstreamOptions): string | null {
  if (typeof credential !== 'object') return null
  try {
    if (isSecret(readPlainFileNow(credential.file).trim())) return null
    return 'credential.file holds no credential: requests to it are refused until it does'
  } catch (error) {
    return `credential.file cannot be read (${String(Object(error).code)}): requests to it are refused until it can`
  }
}

/** `v4`, `v1beta1`: what providers call their versions. */
const version = /^v\d+(?:[a-z]+\d*)?$/

const near = new BlockList()
for (const [network, bits] of [
  ['127.0.0.0', 8], ['10.0.0.0', 8], ['172.16.0.0', 12], ['192.168.0.0', 16], ['169.254.0.0', 16], ['100.64.0.0', 10],
] as const) {
  near.addSubnet(network, bits, 'ipv4')
}
for (const [network, bits] of [['::1', 128], ['fc00::', 7], ['fe80::', 10]] as const) near.addSubnet(network, bits, 'ipv6')

/** Names without a dot, and those that only local networks resolve (RFC 6761, RFC 6762, RFC 9476, Kubernetes). */
const ownNames = /^[^.]+$|\.(?:localhost|local|internal|alt|test|svc|home\.arpa)$/

/** Over plain HTTP, every network on the way can read prompts and the provider's key. */
function plaintextWarning ({ url }: UpstreamOptions): string | null {
  const { protocol, hostname } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  const ipVersion = isIP(host)
  const isNear = ipVersion === 0 ? ownNames.test(host) : near.check(host, ipVersion === 6 ? 'ipv6' : 'ipv4')
  if (protocol !== 'http:' || isNear) return null
  return 'url is not encrypted, and leads out of this network: whoever is on the way reads prompts and the credential; use https://'
}

/** The base contains a version of its own, and another one would be put behind it. */
function versionWarning ({ url, path }: UpstreamOptions): string | null {
  if (path !== undefined) return null
  const own = segmentsOf(beforeVersions(new URL(url).pathname)).find((segment) => version.test(segment) && segment !== 'v1')
  if (own === undefined) return null
  return `url holds ${own}, which looks like a version, and another one is put behind it: say path: verbatim where the provider has none ` +
    'there, or path: canonical'
}
