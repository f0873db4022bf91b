export type JsonObject = Record<string, unknown>

/** True for an object of JSON: neither null nor a list. */
export function isObject (value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A field of an object or a list; undefined of anything else. */
export function fieldOf (value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

/** The value at a path of keys; undefined if any of it is missing. */
export function valueAt (value: unknown, path: readonly string[]): unknown {
  for (const key of path) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined
    value = value[key]
  }
  return value
}

/** The values at a path of keys, in which `*` is each element of a list, from the key at `at` on. They are added to `found`. */
export function valuesAt (value: unknown, path: readonly string[], at = 0, found: unknown[] = []): unknown[] {
  const key = path[at]
  if (key === undefined) found.push(value)
  else if (key !== '*') {
    if (isObject(value)) valuesAt(value[key], path, at + 1, found)
  } else if (Array.isArray(value)) for (const element of value) valuesAt(element, path, at + 1, found)
  return found
}

/** A text, a number or the like as text; empty for an object or a list, which may bring a `toString` that is no function. */
export function plainText (value: unknown): string {
  return typeof value === 'object' ? '' : String(value)
}

/** The keys of a JSON pointer (RFC 6901). */
export function pointerKeys (pointer: string): string[] {
  return pointer.split('/').slice(1).map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
}
