import type { Attributes } from '@opentelemetry/api'
import { valueAt } from '../core/body/json-object.js'
import { attributes } from '../core/telemetry/genai.js'
import type { Endpoint } from '../protocols/index.js'
import type { FieldPath } from '../protocols/text-rules.js'

/** The settings of a model call, from its parsed body: numbers only, so that no content is included. */
export function requestAttributes ({ output, text }: Endpoint, json: unknown): Attributes {
  const found: Attributes = {}
  const set = (attribute: string, paths: readonly FieldPath[] = [], unsaid?: number): void => {
    const value = numberAt(json, paths)
    if (value !== unsaid && value !== null) found[attribute] = value
  }
  set(attributes.maxTokens, output?.max)
  set(attributes.temperature, text?.settings.temperature)
  set(attributes.topP, text?.settings.topP)
  set(attributes.topK, text?.settings.topK)
  set(attributes.seed, text?.settings.seed)
  // One choice is the default, which the conventions leave out.
  set(attributes.choiceCount, output?.choices, 1)
  return found
}

function numberAt (json: unknown, paths: readonly FieldPath[]): number | null {
  for (const path of paths) {
    const value = valueAt(json, path)
    if (typeof value === 'number') return value
  }
  return null
}
