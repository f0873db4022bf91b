import { isObject, type JsonObject } from '../core/body/json-object.js'

/** Where a value is: in `first`; or in `second` inside of that, if it is not null; or in `third` inside of both. */
export interface Place {
  readonly first: string
  readonly second: string | null
  readonly third: string | null
}

/**
 * No reply has more tokens. A larger number is a provider's mistake, and would make later sums inexact, which are exact up to
 * 2^53.
 */
const maxTokens = 999_999_999_999
const digits = /^\d{1,12}$/

/**
 * A plausible count of tokens; null for anything else. Some servers write it as a text, and an aggregator converts what its providers
 * charge for pictures into tokens with a fraction (https://github.com/BerriAI/litellm/issues/28024): that is charged as a whole one.
 */
export function countIn (value: unknown): number | null {
  const count = typeof value === 'string' && digits.test(value) ? Number(value) : value
  return typeof count === 'number' && count >= 0 && count <= maxTokens ? Math.ceil(count) : null
}

/** Reads a provider's usage object. Absent, null and zero are three different things; anything that is no count is `odd`. */
export class UsageObject {
  /** True once a field held something that is no count of tokens. */
  odd = false
  /** How many counts were found so far. */
  seen = 0
  readonly #object: JsonObject

  constructor (object: JsonObject) {
    this.#object = object
  }

  /** The first count at one of the places, null for none. */
  number (places: readonly Place[]): number | null {
    for (const place of places) {
      if (this.#object[place.first] === undefined) continue
      const value = this.#valueAt(place)
      if (value === undefined || value === null) continue
      const count = countIn(value)
      if (count !== null) {
        this.seen += 1
        return count
      }
      this.odd = true
    }
    return null
  }

  /** The first object or list at one of the places. */
  container (places: readonly Place[]): object | null {
    for (const place of places) {
      const value = this.#valueAt(place)
      if (typeof value === 'object' && value !== null) return value
    }
    return null
  }

  #valueAt ({ first, second, third }: Place): unknown {
    const outer = this.#object[first]
    if (second === null) return outer
    const inner = isObject(outer) ? outer[second] : undefined
    if (third === null) return inner
    return isObject(inner) ? inner[third] : undefined
  }
}

/**
 * Merges an older usage object into a newer one of the same reply, in place: per field the newer value wins, unless it is
 * null or missing. Values are cumulative, so nothing is added up, and no maximum is taken.
 * Two levels deep and no deeper: a reply may nest thousands of objects.
 */
export function overlay (older: JsonObject, newer: JsonObject, isWithin = false): JsonObject {
  for (const key in older) {
    const before = older[key]
    const value = Object.hasOwn(newer, key) ? newer[key] : null
    if (value === null) newer[key] = before
    else if (!isWithin && isObject(value) && isObject(before)) overlay(before, value, true)
  }
  return newer
}
