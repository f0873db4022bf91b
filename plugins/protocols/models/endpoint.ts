import { defineEndpoint } from '../endpoint.js'
import { anthropic } from '../family-anthropic.js'
import { gemini } from '../family-gemini.js'
import { openai } from '../family-openai.js'
import { protocolsOf, type ProtocolName } from '../list.js'
import type { EndpointOf, Family } from '../types.js'

export interface ModelLists {
  readonly list: ReadonlyArray<EndpointOf<'models', ProtocolName>>
  readonly retrieve: ReadonlyArray<EndpointOf<'models', ProtocolName>>
}

function modelLists (family: Family): ModelLists {
  const shared = { protocol: 'models', family, operation: 'models', allowedBy: protocolsOf(family) } as const
  return {
    list: [defineEndpoint(shared, { id: `models.${family.name}`, path: 'models', method: 'GET', body: 'none' })],
    retrieve: [defineEndpoint(shared, { id: `models.${family.name}.retrieve`, path: 'models/:model', method: 'GET', body: 'none' })],
  }
}

/** One address of three families, distinguished by headers: see `familyOf`. */
export const models = {
  openai: modelLists(openai),
  anthropic: modelLists(anthropic),
  gemini: modelLists(gemini),
}
