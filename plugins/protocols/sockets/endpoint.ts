import { defineEndpoint } from '../endpoint.js'
import { anthropic } from '../family-anthropic.js'
import { gemini } from '../family-gemini.js'
import { openai } from '../family-openai.js'
import { familyProtocols } from '../models/endpoint.js'
import type { Endpoint, Family, FamilyName } from '../types.js'

function socket (family: Family): Endpoint {
  const shared = { protocol: 'sockets', family, operation: 'sockets', allowedBy: familyProtocols[family.name] } as const
  return defineEndpoint(shared, { id: `sockets.${family.name}`, path: 'sockets', method: 'GET', body: 'none' })
}

/** What an upgrade is taken for: asked for a key like any other request, and sent nowhere. It has no address of its own. */
export const sockets: Readonly<Record<FamilyName, Endpoint>> = { openai: socket(openai), anthropic: socket(anthropic), gemini: socket(gemini) }
