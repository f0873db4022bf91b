/** Models in the format of each family's own API, from names only: other facts that providers report are not known here. */
import type { FamilyName } from './types.js'

interface ModelDocuments {
  readonly one: (name: string) => object
  /** All on one page. */
  readonly list: (names: readonly string[]) => object
}

/** https://platform.openai.com/docs/api-reference/models */
function openaiModel (id: string): object {
  return { id, object: 'model', created: 0, owned_by: 'llm-gateway' }
}

/** https://docs.anthropic.com/en/api/models-list */
function anthropicModel (id: string): object {
  return { type: 'model', id, display_name: id, created_at: '1970-01-01T00:00:00Z' }
}

/** https://ai.google.dev/api/models */
function geminiModel (name: string): object {
  return { name: name.startsWith('tunedModels/') ? name : `models/${name}`, displayName: name }
}

export const modelDocuments: Readonly<Record<FamilyName, ModelDocuments>> = {
  openai: { one: openaiModel, list: (names) => ({ object: 'list', data: names.map(openaiModel) }) },
  anthropic: {
    one: anthropicModel,
    list: (names) => ({ data: names.map(anthropicModel), has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null }),
  },
  gemini: { one: geminiModel, list: (names) => ({ models: names.map(geminiModel) }) },
}
