import { anthropic } from '../family-anthropic.js'
import { gemini } from '../family-gemini.js'
import { openai } from '../family-openai.js'
import { protocols } from '../list.js'
import type { Ask, Simulation } from '../simulate-text.js'
import type { Family } from '../types.js'

const createdAt = '2026-01-01T00:00:00Z'

type Describe = (id: string) => Record<string, unknown>

const openaiModel: Describe = (id) => ({ id, object: 'model', created: Date.parse(createdAt) / 1000, owned_by: 'simulated' })
const anthropicModel: Describe = (id) => ({ type: 'model', id, display_name: id, created_at: createdAt })
const geminiModel: Describe = (id) => ({
  name: `models/${id}`,
  version: '001',
  displayName: id,
  inputTokenLimit: 1_048_576,
  outputTokenLimit: 65_536,
  supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
})

/** The models of the family's examples, each once. */
function idsOf (family: Family): string[] {
  return [...new Set(protocols.filter((protocol) => protocol.family === family).map(({ example }) => example.model))]
}

const retrieve = (describe: Describe): Simulation => ({ reply: (ask: Ask) => describe(ask.model) })

export const simulateModels: Readonly<Record<string, Simulation>> = {
  'models.openai': { reply: () => ({ object: 'list', data: idsOf(openai).map(openaiModel) }) },
  'models.anthropic': {
    reply: () => {
      const ids = idsOf(anthropic)
      return { data: ids.map(anthropicModel), has_more: false, first_id: ids[0], last_id: ids.at(-1) }
    },
  },
  'models.gemini': { reply: () => ({ models: idsOf(gemini).map(geminiModel) }) },
  'models.openai.retrieve': retrieve(openaiModel),
  'models.anthropic.retrieve': retrieve(anthropicModel),
  'models.gemini.retrieve': retrieve(geminiModel),
}
