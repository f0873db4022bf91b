import { defineEndpoints } from '../endpoint.js'
import { anthropic } from '../family-anthropic.js'
import { gemini } from '../family-gemini.js'
import { openai } from '../family-openai.js'
import type { Endpoint, Family, FamilyName, ProtocolName } from '../types.js'

export interface ModelLists {
  readonly list: readonly Endpoint[]
  readonly retrieve: readonly Endpoint[]
}

function modelLists (family: Family, allowedBy: readonly ProtocolName[]): ModelLists {
  const shared = { protocol: 'models', family, operation: 'models', allowedBy } as const
  return {
    list: defineEndpoints(shared, [{ id: `models.${family.name}`, path: 'models', method: 'GET', body: 'none' }]),
    retrieve: defineEndpoints(shared, [{ id: `models.${family.name}.retrieve`, path: 'models/:model', method: 'GET', body: 'none' }]),
  }
}

/** What opens an endpoint that belongs to a whole family. */
export const familyProtocols = {
  openai: ['chat_completions', 'responses', 'images', 'embeddings'],
  anthropic: ['messages'],
  gemini: ['generate_content'],
} as const satisfies Record<FamilyName, readonly ProtocolName[]>

/** One address, three families: told apart by headers, see `familyOf`. */
export const models = {
  openai: modelLists(openai, familyProtocols.openai),
  anthropic: modelLists(anthropic, familyProtocols.anthropic),
  gemini: modelLists(gemini, familyProtocols.gemini),
}
