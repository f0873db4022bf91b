import { isObject, type JsonObject } from '../core/body/json-object.js'

/** The key of a value, that of the object around it where there is one, and one within it where that is meant. */
export interface Place {
  readonly outer: string | null
  readonly key: string
  readonly inner: string | null
}

/**
 * No reply has more tokens. A larger number is a provider's mistake, and beside it everything counted later would be lost:
 * sums are exact up to 2^53.
 */
const maxTokens = 999_999_999_999

/** False for what a field may hold in place of a count of tokens. */
export function isCount (value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxTokens
}

/** Reads a provider's usage object. Absent, null and zero are three things; what is no count of tokens is none of them. */
export class UsageObject {
  /** True once a field held something that is no count of tokens. */
  odd = false
  /** Counts that were found so far. */
  seen = 0
  private readonly object: JsonObject

  constructor (object: JsonObject) {
    this.object = object
  }

  /** The first count that stands at one of the places, null for none. */
  number (places: readonly Place[]): number | null {
    for (const place of places) {
      const value = this.valueAt(place)
      if (value === undefined || value === null) continue
      if (isCount(value)) {
        this.seen += 1
        return value
      }
      this.odd = true
    }
    return null
  }

  /** The first object or list that stands at one of the places. */
  container (places: readonly Place[]): object | null {
    for (const place of places) {
      const value = this.valueAt(place)
      if (typeof value === 'object' && value !== null) return value
    }
    return null
  }

  private valueAt ({ outer, key, inner }: Place): unknown {
    if (outer === null) return this.object[key]
    const around = this.object[outer]
    const value = isObject(around) ? around[key] : undefined
    if (inner === null) return value
    return isObject(value) ? value[inner] : undefined
  }
}

/**
 * Lays a newer usage object of the same reply over an older one, in place: per field the newer value wins, unless it is
 * null: values are cumulative, and a missing one keeps what was told before. Never sum, never max.
 * Two levels deep and no deeper: a reply may nest thousands of objects.
 */
export function overlay (older: JsonObject | null, newer: JsonObject, isWithin = false): JsonObject {
  for (const key in older) {
    const before = older[key]
    const value = Object.hasOwn(newer, key) ? newer[key] : null
    if (value === null) newer[key] = before
    else if (!isWithin && isObject(value) && isObject(before)) overlay(before, value, true)
  }
  return newer
}
