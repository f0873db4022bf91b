import { folded } from './folded.js'
import { isObject, type JsonObject } from './json-object.js'

/**
 * Every model that a body names in one of these fields, such as `requests.*.model` (`*` for each element of a list): a name,
 * a list, or a list of objects that hold one. `prefix` may stand before a name and means nothing. Null where it has none of the fields.
 */
export function otherModels (json: unknown, paths: readonly string[], prefix: string): readonly string[] | null {
  if (!isObject(json)) return null
  // Nearly every body has none of the fields.
  const there = keysOf(paths).filter(([first = '']) => json[first] !== undefined)
  if (there.length === 0) return null
  const names = there.flatMap((keys) => namesIn(valuesAt(json, keys)))
  return names.map((name) => name.startsWith(prefix) ? name.slice(prefix.length) : name)
}

/** True where a body has something at one of these paths. */
export function hasAny (json: unknown, paths: readonly string[]): boolean {
  return keysOf(paths).some((keys) => valuesAt(json, keys).length > 0)
}

function valuesAt (json: unknown, [key, ...rest]: readonly string[]): unknown[] {
  if (key === undefined) return [json]
  if (key === '*') return Array.isArray(json) ? json.flatMap((element) => valuesAt(element, rest)) : []
  return isObject(json) ? membersOf(json, key).flatMap((member) => valuesAt(member, rest)) : []
}

/** Under each spelling that some upstream takes for the key. */
function membersOf (json: JsonObject, key: string): unknown[] {
  const found: unknown[] = []
  const wanted = folded(key)
  for (const name in json) {
    // Nearly every key has nothing in it that folds.
    if (name === key || name === wanted || (/[^a-z0-9_]/.test(name) && folded(name) === wanted)) found.push(json[name])
  }
  return found
}

function namesIn (value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(namesIn)
  if (!isObject(value)) return []
  const named = membersOf(value, 'model')
  return (named.length > 0 ? named : Object.values(value)).flatMap(namesIn)
}

const split = new WeakMap<readonly string[], ReadonlyArray<readonly string[]>>()

/** Taken apart once: the paths are those of an endpoint. */
function keysOf (paths: readonly string[]): ReadonlyArray<readonly string[]> {
  const known = split.get(paths)
  if (known !== undefined) return known
  const keys = paths.map((path) => path.split('.'))
  split.set(paths, keys)
  return keys
}
