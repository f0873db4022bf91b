export type JsonObject = Record<string, unknown>

export function isObject (value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function valueAt (object: JsonObject, path: readonly string[]): unknown {
  let value: unknown = object
  for (const key of path) {
    if (!isObject(value)) return undefined
    value = value[key]
  }
  return value
}

/** A provider's usage object. Absent, null and zero are three things; anything that is no count is none of them. */
export class UsageObject {
  /** True once a field held something that is no count of tokens. */
  odd = false
  private readonly object: JsonObject

  constructor (object: JsonObject) {
    this.object = object
  }

  /** The first count that stands at one of the paths, null for none. */
  number (paths: readonly (readonly string[])[]): number | null {
    for (const path of paths) {
      const value = valueAt(this.object, path)
      if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
      if (value !== undefined && value !== null) this.odd = true
    }
    return null
  }

  /** The first object or list that stands at one of the paths. */
  container (paths: readonly (readonly string[])[]): object | null {
    for (const path of paths) {
      const value = valueAt(this.object, path)
      if (typeof value === 'object' && value !== null) return value
    }
    return null
  }
}

/**
 * Lays a newer usage object of the same reply over an older one: per field the newer value wins, unless it is null
 * (facts/protocols.md 4.2: values are cumulative, a missing one keeps what was told before; never sum, never max).
 */
export function overlay (older: JsonObject | null, newer: JsonObject): JsonObject {
  const merged: JsonObject = { ...older }
  for (const [key, value] of Object.entries(newer)) {
    if (value === null) continue
    const before = merged[key]
    merged[key] = isObject(value) && isObject(before) ? overlay(before, value) : value
  }
  return merged
}
