/** What a community price list does not say of the providers in it. */

/** `litellm_provider` of those whose long-context prices hold from the threshold on, and not only above it. */
export const inclusiveThresholds: ReadonlySet<string> = new Set(['xai'])
/** Of those that take a search for one of the whole request, however many queries it makes, where the entry does not say otherwise. */
export const searchedByRequest: ReadonlySet<string> = new Set(['gemini', 'vertex_ai', 'vertex_ai-language-models'])
