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

/** A text, a number or the like as text; empty for an object or a list, which may bring a `toString` that is no function. */
export function plainText (value: unknown): string {
  return typeof value === 'object' ? '' : String(value)
}

/** The keys of a JSON pointer (RFC 6901). */
export function pointerKeys (pointer: string): string[] {
  return pointer.split('/').slice(1).map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
}
