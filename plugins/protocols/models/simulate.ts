import { families } from '../families.js'
import { protocols } from '../list.js'
import { documentsOf } from '../model-documents.js'
import type { Simulation } from '../simulate-text.js'
import type { Family } from '../types.js'

const createdAt = '2026-01-01T00:00:00Z'

const documents = documentsOf({
  openai: (id) => ({ id, object: 'model', created: Date.parse(createdAt) / 1000, owned_by: 'simulated' }),
  anthropic: (id) => ({ type: 'model', id, display_name: id, created_at: createdAt }),
  gemini: (id) => ({
    name: `models/${id}`,
    version: '001',
    displayName: id,
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
  }),
})

/** The models of the family's examples, each once. */
function idsOf (family: Family): string[] {
  return [...new Set(protocols.filter((protocol) => protocol.family === family).map(({ example }) => example.model))]
}

function simulationsOf (family: Family): Array<[endpoint: string, simulation: Simulation]> {
  const { one, list } = documents[family.name]
  return [
    [`models.${family.name}`, { reply: () => list(idsOf(family)) }],
    [`models.${family.name}.retrieve`, { reply: ({ model }) => one(model) }],
  ]
}

export const simulateModels: Readonly<Record<string, Simulation>> = Object.fromEntries(Object.values(families).flatMap(simulationsOf))
