import { isObject, plainText, type JsonObject } from '../body/json-object.js'
import type { PaidTool } from '../../protocols/types.js'

type Paths = ReadonlyArray<readonly string[]>

/** The entries of a body's list of tools, and of those in its conversation, that are this one. Some upstreams accept one without a list. */
export function paidTools (json: unknown, { names }: PaidTool, within: Paths = []): JsonObject[] {
  const lists: unknown[] = []
  for (const path of [['tools'], ...within]) collect(json, path, 0, lists)
  return lists.flat().filter((entry): entry is JsonObject => isObject(entry) && isNamed(entry, names))
}

/** Adds what a body has at a path, from `at` on. */
function collect (value: unknown, path: readonly string[], at: number, found: unknown[]): void {
  const key = path[at]
  if (key === undefined) found.push(value)
  else if (key !== '*') {
    if (isObject(value)) collect(value[key], path, at + 1, found)
  } else if (Array.isArray(value)) for (const element of value) collect(element, path, at + 1, found)
}

/** No container has more gigabytes. A text of many digits is no number to count with. */
const maxSize = 1_000_000

/** The largest of sizes such as `4g`, at least 1. */
export function largestOf (sizes: readonly unknown[]): number {
  return sizes.reduce<number>((most, size) => Math.max(most, Math.min(Number.parseInt(plainText(size), 10) || 1, maxSize)), 1)
}

function isNamed (entry: JsonObject, names: readonly string[]): boolean {
  const { type } = entry
  return names.some((name) => (typeof type === 'string' && type.startsWith(name)) || Object.hasOwn(entry, name))
}
