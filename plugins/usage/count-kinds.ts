import type { ModalityTokens, TokenUsage } from '../request.js'
import type { CountPaths } from './plan.js'
import { isObject, type JsonObject, type UsageObject } from './usage-object.js'

type Direction = ModalityTokens['direction']

/** Kinds of content with a field of their own, `<kind>_tokens`, beside fields that tell other things. */
const fieldKinds = ['text', 'image', 'audio', 'video'] as const

/** The split of the same tokens by kind of content, in either form that providers use. Kinds without tokens are left out. */
export function countKinds (told: UsageObject, counts: CountPaths, usage: TokenUsage): ModalityTokens[] {
  const output = told.container(counts.outputKinds)
  const kinds = [...kindsIn(told.container(counts.inputKinds), 'input'), ...kindsIn(output, 'output')]
  const tokens = usage.output + usage.reasoning
  if (output === null && counts.outputKind !== null && tokens > 0) {
    kinds.push({ direction: 'output', modality: counts.outputKind, tokens })
  }
  return kinds
}

function kindsIn (split: object | null, direction: Direction): ModalityTokens[] {
  if (split === null) return []
  const kinds = Array.isArray(split) ? split.filter(isObject).map(listed) : fields(split)
  return kinds.flatMap(([modality, tokens]) => {
    if (typeof modality !== 'string' || typeof tokens !== 'number' || !(tokens > 0)) return []
    return { direction, modality: modality.toLowerCase(), tokens }
  })
}

function listed (entry: JsonObject): [unknown, unknown] {
  return [entry['modality'], entry['tokenCount']]
}

function fields (split: object): [unknown, unknown][] {
  return fieldKinds.map((kind) => [kind, Reflect.get(split, `${kind}_tokens`)])
}
