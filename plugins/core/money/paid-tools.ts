import { isObject, plainText, valuesAt, type JsonObject } from '../body/json-object.js'
import type { PaidTool } from '../../protocols/types.js'

type Paths = ReadonlyArray<readonly string[]>

/** The entries of a body's list of tools, and of those in its conversation, that are this one. Some upstreams accept one without a list. */
export function paidTools (json: unknown, { names }: PaidTool, within: Paths = []): JsonObject[] {
  const lists = [['tools'], ...within].flatMap((path) => valuesAt(json, path))
  return lists.flat().filter((entry): entry is JsonObject => isObject(entry) && isNamed(entry, names))
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
