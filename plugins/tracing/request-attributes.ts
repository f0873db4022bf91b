import type { Attributes } from '@opentelemetry/api'
import { attributes } from '../core/telemetry/genai.js'

interface Field {
  readonly attribute: string
  /** Where the protocols write it, first match wins; dots go down. */
  readonly paths: readonly string[]
}

const fields: readonly Field[] = [
  {
    attribute: attributes.maxTokens,
    paths: ['max_completion_tokens', 'max_output_tokens', 'max_tokens', 'generationConfig.maxOutputTokens', 'generation_config.max_output_tokens'],
  },
  { attribute: attributes.temperature, paths: ['temperature', 'generationConfig.temperature', 'generation_config.temperature'] },
  { attribute: attributes.topP, paths: ['top_p', 'generationConfig.topP', 'generation_config.top_p'] },
  { attribute: attributes.topK, paths: ['top_k', 'generationConfig.topK', 'generation_config.top_k'] },
  { attribute: attributes.seed, paths: ['seed', 'generationConfig.seed', 'generation_config.seed'] },
  { attribute: attributes.choiceCount, paths: ['n', 'generationConfig.candidateCount', 'generation_config.candidate_count'] },
]

/** The settings of a model call, from its parsed body: numbers only, so that no content can get in. */
export function requestAttributes (json: unknown): Attributes {
  const found: Attributes = {}
  for (const { attribute, paths } of fields) {
    const value = paths.map((path) => valueAt(json, path)).find((candidate) => typeof candidate === 'number')
    // One choice is what everybody gets: the conventions leave it out.
    if (value === undefined || (attribute === attributes.choiceCount && value === 1)) continue
    found[attribute] = value
  }
  return found
}

function valueAt (json: unknown, path: string): number | undefined {
  let value = json
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined
    value = Reflect.get(value, name)
  }
  return typeof value === 'number' ? value : undefined
}
