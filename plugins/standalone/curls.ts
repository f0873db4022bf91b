/** A working command for each protocol, to be copied from the terminal. */
import type { GroupOptions } from '../auth/index.js'
import { beforeVersions } from '../core/url/segments.js'
import { protocols, versionHeader, type Protocol } from '../protocols/index.js'
import type { GatewayConfig } from './config-types.js'
import type { ListenAddress } from './config-values.js'

/** Base address for this machine; a gateway that listens on all addresses is reached on loopback. */
export function originOf ({ host, port }: ListenAddress): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

/** One line for each protocol that some group allows. */
export function curlLines (config: GatewayConfig, origin: string): string[] {
  return protocols.flatMap((protocol) => {
    const found = Object.entries(config.groups).find(([, group]) => group.thirdParty !== false && group.protocols.includes(protocol.name))
    return found === undefined ? [] : [curlLine(config, origin, protocol, ...found)]
  })
}

function curlLine (config: GatewayConfig, origin: string, { family, example }: Protocol, groupId: string, group: GroupOptions): string {
  const model = group.models?.[0] ?? example.model
  const [name, value] = family.upstreamHeader(keyFor(config, groupId, group))
  const headers = Object.entries({ [name]: value, 'content-type': 'application/json', ...versionHeader(family) })
  const parts = headers.map(([header, text]) => `-H ${quote(`${header}: ${text}`)}`)
  return `curl ${quote(origin + beforeVersions(config.prefix ?? '') + example.path(model))} ${parts.join(' ')} -d ` +
    `${quote(JSON.stringify(example.body(model)))}`
}

/** A secret is shown only if it opens nothing but the simulated upstream. */
function keyFor (config: GatewayConfig, groupId: string, { upstream, routes = [] }: GroupOptions): string {
  const names = typeof upstream === 'string' ? [upstream] : Object.values(upstream ?? Object.keys(config.upstreams))
  const simulated = [...names, ...routes.map((route) => route.upstream)].every((name) => config.upstreams[name]?.simulate === true)
  const key = config.keys?.find(({ group, secret, disabled }) => group === groupId && secret !== undefined && disabled !== true)
  return simulated ? key?.secret ?? 'YOUR_KEY' : 'YOUR_KEY'
}

/** Text as a shell takes it. */
export function quote (text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
