import { defineEndpoint } from '../endpoint.js'
import { anthropic } from '../family-anthropic.js'
import { gemini } from '../family-gemini.js'
import { openai } from '../family-openai.js'
import { protocolsOf, type ProtocolName } from '../list.js'
import type { EndpointOf, Family, FamilyName } from '../types.js'

type SocketEndpoint = EndpointOf<'sockets', ProtocolName>

function socket (family: Family): SocketEndpoint {
  const shared = { protocol: 'sockets', family, operation: 'sockets', allowedBy: protocolsOf(family) } as const
  return defineEndpoint(shared, { id: `sockets.${family.name}`, path: 'sockets', method: 'GET', body: 'none' })
}

/** The endpoint of upgrades: they need a key like any other request, and are sent nowhere. It has no address of its own. */
export const sockets: Readonly<Record<FamilyName, SocketEndpoint>> = {
  openai: socket(openai), anthropic: socket(anthropic), gemini: socket(gemini),
}
