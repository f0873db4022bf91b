import type { ModalityTokens } from '../core/types.js'
import { isObject, type JsonObject } from '../core/body/json-object.js'
import { countIn } from './usage-object.js'

type Direction = ModalityTokens['direction']

/** Kinds of content that have a field of their own, among other fields. */
const fieldKinds = [['text', 'text_tokens'], ['image', 'image_tokens'], ['audio', 'audio_tokens'], ['video', 'video_tokens']] as const

/**
 * The tokens of one direction by kind of content, in either form that providers use. Kinds without tokens are left out.
 * `numbered`: the names of a provider's enumeration, for replies that have numbers instead.
 */
export function kindsIn (direction: Direction, split: object | null, numbered: readonly string[], prefix = ''): ModalityTokens[] {
  const kinds: ModalityTokens[] = []
  if (Array.isArray(split)) {
    for (const entry of split) {
      if (isObject(entry)) addKind(kinds, direction, wordOf(entry['modality'], numbered), entry['tokenCount'])
    }
  } else if (isObject(split)) addFields(kinds, direction, split, prefix)
  return kinds
}

/** Says of each kind how many of its tokens came from a cache, if the split tells that of any. */
export function tellCached (kinds: readonly ModalityTokens[], split: object, numbered: readonly string[]): void {
  const told = new Map<string, number>()
  for (const prefix of ['', 'cached_']) {
    if (told.size > 0) break
    for (const { modality, tokens } of kindsIn('input', split, numbered, prefix)) told.set(modality, (told.get(modality) ?? 0) + tokens)
  }
  if (told.size === 0) return
  for (const kind of kinds) {
    kind.cached = told.get(kind.modality) ?? 0
    // A kind may be listed twice.
    told.delete(kind.modality)
  }
}

function wordOf (modality: unknown, numbered: readonly string[]): unknown {
  return typeof modality === 'number' ? numbered[modality] : modality
}

function addFields (kinds: ModalityTokens[], direction: Direction, split: JsonObject, prefix: string): void {
  for (const [kind, field] of fieldKinds) addKind(kinds, direction, kind, split[prefix + field])
}

function addKind (kinds: ModalityTokens[], direction: Direction, kind: unknown, tokens: unknown): void {
  const count = countIn(tokens)
  if (typeof kind === 'string' && count !== null && count > 0) kinds.push({ direction, modality: kind.toLowerCase(), tokens: count })
}
