import { isObject, type JsonObject } from '../body/json-object.js'
import type { PaidTool } from '../../protocols/types.js'

/** The entries of a body's list of tools that are this one. Some upstreams also accept a tool that is not in a list. */
export function paidTools (json: unknown, { names }: PaidTool): JsonObject[] {
  const given: unknown = isObject(json) ? json['tools'] : undefined
  return [given].flat().filter((entry): entry is JsonObject => isObject(entry) && isNamed(entry, names))
}

/** The largest of sizes such as `4g`, at least 1. */
export function largestOf (sizes: readonly unknown[]): number {
  return sizes.reduce<number>((most, size) => Math.max(most, Number.parseInt(String(size), 10) || 1), 1)
}

function isNamed (entry: JsonObject, names: readonly string[]): boolean {
  const { type } = entry
  return names.some((name) => (typeof type === 'string' && type.startsWith(name)) || Object.hasOwn(entry, name))
}
