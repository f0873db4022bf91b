import { examples } from '../examples.js'
import type { Ask, Simulation } from '../simulate-text.js'

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

const openaiIds = [...new Set([examples.chat_completions, examples.responses, examples.images, examples.embeddings].map(({ model }) => model))]
const anthropicId = examples.messages.model

const retrieve = (describe: Describe): Simulation => ({ reply: (ask: Ask) => describe(ask.model) })

export const simulateModels: Readonly<Record<string, Simulation>> = {
  'models.openai': { reply: () => ({ object: 'list', data: openaiIds.map(openaiModel) }) },
  'models.anthropic': {
    reply: () => ({ data: [anthropicModel(anthropicId)], has_more: false, first_id: anthropicId, last_id: anthropicId }),
  },
  'models.gemini': { reply: () => ({ models: [geminiModel(examples.generate_content.model)] }) },
  'models.openai.retrieve': retrieve(openaiModel),
  'models.anthropic.retrieve': retrieve(anthropicModel),
  'models.gemini.retrieve': retrieve(geminiModel),
}
