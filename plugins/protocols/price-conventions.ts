/** Conventions of providers that the community's price list does not state. */

/** `litellm_provider` of those whose long-context prices apply at the threshold, too, and not only above it. */
export const inclusiveThresholds: ReadonlySet<string> = new Set(['xai'])
/** Those that charge one search per request, however many queries it makes, unless the entry says otherwise. */
export const searchedByRequest: ReadonlySet<string> = new Set(['gemini', 'vertex_ai', 'vertex_ai-language-models'])
