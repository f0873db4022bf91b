// `%2F` inside a model, `%3A` and `%40` because clients encode `:` and `@` of a model id, `%2B` for `+`. Nothing else:
// `%2e`, `%5c`, `%00`, `%25` would each mean one thing to us and another to the next reader.
const triplets: ReadonlyMap<string, string> = new Map([['%2F', '/'], ['%3A', ':'], ['%40', '@'], ['%2B', '+']])

/**
 * The model that a piece of path names, decoded exactly once; null where it holds anything that is not plainly a model
 * id. A model may hold `/`, `:` and `@`, but neither empty nor dot segments.
 */
export function modelName (raw: string): string | null {
  if (!/^(?:[A-Za-z0-9._~:/@+=,()!*-]|%2F|%3A|%40|%2B)+$/i.test(raw)) return null
  const name = raw.replace(/%../g, (triplet) => String(triplets.get(triplet.toUpperCase())))
  return /(?:^|\/)\.{0,2}(?:\/|$)/.test(name) ? null : name
}
