// `%2F` inside a model, `%3A` and `%40` because clients encode `:` and `@` of a model id, `%2B` for `+`. Nothing else: `%2e`, `%5c`, `%00`,
// `%25` could each mean one thing here and another to the next reader.
const triplets: ReadonlyMap<string, string> = new Map([['%2F', '/'], ['%3A', ':'], ['%40', '@'], ['%2B', '+']])

/**
 * The model that a part of the path names, decoded exactly once; null if it contains anything that is not plainly a model id. A model may
 * contain `/`, `:` and `@`, but no empty and no dot segments.
 */
export function modelName (raw: string): string | null {
  if (!/^(?:[A-Za-z0-9._~:/@+=,()!*-]|%2F|%3A|%40|%2B)+$/i.test(raw)) return null
  const name = raw.replace(/%../g, (triplet) => String(triplets.get(triplet.toUpperCase())))
  return /(?:^|\/)\.{0,2}(?:\/|$)/.test(name) ? null : name
}
