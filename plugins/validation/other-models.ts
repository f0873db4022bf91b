import { folded } from '../core/body/folded.js'
import { isObject, type JsonObject } from '../core/body/json-object.js'

/**
 * Every model that a body names in one of these fields, such as `requests.*.model` (`*` for each element of a list): a name, a list, or a
 * list of objects that hold one. `prefix` may precede a name and has no meaning. Null if the body has none of the fields. The first key of
 * a path has its exact spelling: others have been refused (spelling.ts).
 */
export function otherModels (json: unknown, paths: readonly string[], prefix: string): readonly string[] | null {
  if (!isObject(json)) return null
  const there = presentOf(json, paths)
  if (there.length === 0) return null
  const names: string[] = []
  for (const [first = '', ...rest] of there) collectNames(valuesAt(json[first], rest), names)
  return names.map((name) => name.startsWith(prefix) ? name.slice(prefix.length) : name)
}

/** True if a body has something at one of these paths. */
export function hasAny (json: unknown, paths: readonly string[]): boolean {
  return isObject(json) && presentOf(json, paths).some(([first = '', ...rest]) => valuesAt(json[first], rest).length > 0)
}

/** Nearly every body has none of the fields. */
function presentOf (json: JsonObject, paths: readonly string[]): ReadonlyArray<readonly string[]> {
  return keysOf(paths).filter(([first = '']) => json[first] !== undefined)
}

function valuesAt (json: unknown, [key, ...rest]: readonly string[]): unknown[] {
  if (key === undefined) return [json]
  if (key === '*') return Array.isArray(json) ? json.flatMap((element) => valuesAt(element, rest)) : []
  return isObject(json) ? membersOf(json, key).flatMap((member) => valuesAt(member, rest)) : []
}

/** Members under each spelling that some upstream takes for the key. */
function membersOf (json: JsonObject, key: string): unknown[] {
  const found: unknown[] = []
  const wanted = folded(key)
  for (const name in json) {
    // Nearly all keys are plain and need no folding.
    if (name === key || name === wanted || (/[^a-z0-9_]/.test(name) && folded(name) === wanted)) found.push(json[name])
  }
  return found
}

/** Into one list: if lists were returned from level to level, a deeply nested name would be copied hundreds of times. */
function collectNames (value: unknown, names: string[]): void {
  if (typeof value === 'string') names.push(value)
  else if (Array.isArray(value)) for (const element of value) collectNames(element, names)
  else if (isObject(value)) {
    const named = membersOf(value, 'model')
    collectNames(named.length > 0 ? named : Object.values(value), names)
  }
}

const split = new WeakMap<readonly string[], ReadonlyArray<readonly string[]>>()

/** Split once: the paths belong to an endpoint. */
function keysOf (paths: readonly string[]): ReadonlyArray<readonly string[]> {
  const known = split.get(paths)
  if (known !== undefined) return known
  const keys = paths.map((path) => path.split('.'))
  split.set(paths, keys)
  return keys
}
