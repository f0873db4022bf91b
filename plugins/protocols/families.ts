import { anthropic } from './family-anthropic.js'
import { gemini } from './family-gemini.js'
import { openai } from './family-openai.js'
import type { Family, FamilyName } from './types.js'

export const families: Readonly<Record<FamilyName, Family>> = { openai, anthropic, gemini }

/** What `make` makes for each family. */
export function byFamily<Made> (make: (family: Family) => Made): Readonly<Record<FamilyName, Made>> {
  return { openai: make(openai), anthropic: make(anthropic), gemini: make(gemini) }
}
