/** What a community price list does not say of the providers in it. */

/** `litellm_provider` of those whose long-context prices hold from the threshold on, and not only above it. */
export const inclusiveThresholds: ReadonlySet<string> = new Set(['xai'])
