import { BlockList, isIP } from 'node:net'
import { segmentsOf } from '../core/url/segments.js'
import type { UpstreamOptions } from './options.js'

type Address = Pick<UpstreamOptions, 'url' | 'path'>

/** `v4`, `v1beta1`: what providers call their versions. */
const version = /^v\d+(?:[a-z]+\d*)?$/
/** Those that are dropped at the end of a base, and put behind it again. */
const ours = /^(?:v1|v1beta|v1alpha)$/

/** What an operator should look at, in words that follow the name of the field. */
export function addressWarnings (address: Address): string[] {
  return [versionWarning(address), plaintextWarning(address)].filter((warning) => warning !== null)
}

const near = new BlockList()
for (const [network, bits] of [
  ['127.0.0.0', 8], ['10.0.0.0', 8], ['172.16.0.0', 12], ['192.168.0.0', 16], ['169.254.0.0', 16], ['100.64.0.0', 10],
] as const) {
  near.addSubnet(network, bits, 'ipv4')
}
for (const [network, bits] of [['::1', 128], ['fc00::', 7], ['fe80::', 10]] as const) near.addSubnet(network, bits, 'ipv6')

/** Names without a dot, and those that only a network of one's own resolves (RFC 6761, RFC 6762, RFC 9476, Kubernetes). */
const ownNames = /^[^.]+$|\.(?:localhost|local|internal|alt|test|svc|home\.arpa)$/

/** Prompts and the provider's key in plain sight of every network on the way. */
function plaintextWarning ({ url }: Address): string | null {
  const { protocol, hostname } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  const version = isIP(host)
  const isNear = version === 0 ? ownNames.test(host) : near.check(host, version === 6 ? 'ipv6' : 'ipv4')
  if (protocol !== 'http:' || isNear) return null
  return 'is not encrypted, and leads out of this network: whoever is on the way reads prompts and the credential; use https://'
}

/** A base that holds a version of its own, behind which another one is put. */
function versionWarning ({ url, path }: Address): string | null {
  if (path !== undefined) return null
  const segments = segmentsOf(new URL(url).pathname)
  const last = segments.at(-1) ?? ''
  const own = segments.find((segment, i) => version.test(segment) && segment !== 'v1' && !(i === segments.length - 1 && ours.test(last)))
  if (own === undefined) return null
  return `holds ${own}, which looks like a version, and another one is put behind it: say path: verbatim where the provider has none ` +
    'there, or path: canonical'
}
