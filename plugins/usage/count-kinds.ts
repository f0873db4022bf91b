import type { ModalityTokens, TokenUsage } from '../request.js'
import type { CountPlaces } from './plan.js'
import { isObject, type JsonObject, type UsageObject } from './usage-object.js'

type Direction = ModalityTokens['direction']

/** Kinds of content that have a field of their own, beside fields that tell other things. */
const fieldKinds = [['text', 'text_tokens'], ['image', 'image_tokens'], ['audio', 'audio_tokens'], ['video', 'video_tokens']] as const

/** The split of the same tokens by kind of content, in either form that providers use. Kinds without tokens are left out. */
export function countKinds (told: UsageObject, counts: CountPlaces, usage: TokenUsage): ModalityTokens[] {
  const kinds: ModalityTokens[] = []
  addKinds(kinds, 'input', told.container(counts.inputKinds))
  const output = told.container(counts.outputKinds)
  addKinds(kinds, 'output', output)
  if (output === null && counts.outputKind !== null) addKind(kinds, 'output', counts.outputKind, usage.output + usage.reasoning)
  return kinds
}

function addKinds (kinds: ModalityTokens[], direction: Direction, split: object | null): void {
  if (Array.isArray(split)) {
    const entries: unknown[] = split
    for (const entry of entries) {
      if (isObject(entry)) addKind(kinds, direction, entry['modality'], entry['tokenCount'])
    }
  } else if (isObject(split)) addFields(kinds, direction, split)
}

function addFields (kinds: ModalityTokens[], direction: Direction, split: JsonObject): void {
  for (const [kind, field] of fieldKinds) addKind(kinds, direction, kind, split[field])
}

function addKind (kinds: ModalityTokens[], direction: Direction, kind: unknown, tokens: unknown): void {
  if (typeof kind !== 'string' || typeof tokens !== 'number' || !(tokens > 0)) return
  kinds.push({ direction, modality: kind.toLowerCase(), tokens })
}
