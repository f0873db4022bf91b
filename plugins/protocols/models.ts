import { defineEndpoints } from './endpoint.js'
import { anthropic } from './family-anthropic.js'
import { gemini } from './family-gemini.js'
import { openai } from './family-openai.js'
import type { Endpoint, Family, ProtocolName } from './types.js'

function modelList (family: Family, allowedBy: readonly ProtocolName[]): readonly Endpoint[] {
  const shared = { protocol: 'models', family, operation: 'models', allowedBy } as const
  return defineEndpoints(shared, [
    { id: `models.${family.name}`, path: 'models', method: 'GET', body: 'none' },
    { id: `models.${family.name}.retrieve`, path: 'models/:model', method: 'GET', body: 'none' },
  ])
}

/** One address, three families: told apart by headers (DESIGN 4.5), see `familyOfModelList`. */
export const models = {
  openai: modelList(openai, ['chat_completions', 'responses', 'images', 'embeddings']),
  anthropic: modelList(anthropic, ['messages']),
  gemini: modelList(gemini, ['generate_content']),
}
