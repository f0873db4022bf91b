/** Models in the format of each family's own API. */
import type { FamilyName } from './types.js'

/** One model, by its name. */
type Describe = (name: string) => Record<string, unknown>

interface ModelDocuments {
  readonly one: Describe
  /** All on one page. */
  readonly list: (names: readonly string[]) => Record<string, unknown>
}

/** How each family lists models that it describes so. */
export function documentsOf ({ openai, anthropic, gemini }: Readonly<Record<FamilyName, Describe>>): Record<FamilyName, ModelDocuments> {
  return {
    openai: { one: openai, list: (names) => ({ object: 'list', data: names.map(openai) }) },
    anthropic: {
      one: anthropic,
      list: (names) => ({ data: names.map(anthropic), has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null }),
    },
    gemini: { one: gemini, list: (names) => ({ models: names.map(gemini) }) },
  }
}

/** From names only: other facts that providers report are not known here. */
export const modelDocuments = documentsOf({
  // https://platform.openai.com/docs/api-reference/models
  openai: (id) => ({ id, object: 'model', created: 0, owned_by: 'llm-gateway' }),
  // https://docs.anthropic.com/en/api/models-list
  anthropic: (id) => ({ type: 'model', id, display_name: id, created_at: '1970-01-01T00:00:00Z' }),
  // https://ai.google.dev/api/models
  gemini: (name) => ({ name: name.startsWith('tunedModels/') ? name : `models/${name}`, displayName: name }),
})
