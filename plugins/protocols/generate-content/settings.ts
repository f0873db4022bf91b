import type { FieldPath } from '../text-rules.js'

/** Paths of a model setting: proto JSON accepts both spellings at each level. */
export function settingAt (camel: string, snake: string): readonly FieldPath[] {
  const spellings = [...new Set([camel, snake])]
  return ['generationConfig', 'generation_config'].flatMap((config) => spellings.map((name) => [config, name]))
}
