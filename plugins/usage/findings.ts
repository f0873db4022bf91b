/** Reads what a scanner has found, by slots. */

/** Names, ids and words are short. They are cut at this length, because they go into log lines, spans and records. */
export const maxTextLength = 256

/** The text at the first of the slots that has one; empty texts do not count. */
export function textIn (found: readonly unknown[], slots: readonly number[]): string | null {
  for (const slot of slots) {
    const value = found[slot]
    if (typeof value === 'string' && value !== '') return value.slice(0, maxTextLength)
  }
  return null
}

export function numberIn (found: readonly unknown[], slots: readonly number[]): number | null {
  for (const slot of slots) {
    const value = found[slot]
    if (typeof value === 'number') return value
  }
  return null
}
