import type { FieldPath } from '../text-rules.js'

/** Where a setting of the model stands: proto JSON takes both spellings at each level. */
export function settingAt (camel: string, snake: string): readonly FieldPath[] {
  const spellings = [...new Set([camel, snake])]
  return ['generationConfig', 'generation_config'].flatMap((config) => spellings.map((name) => [config, name]))
}
