/** What a reply tells of how it was served, and of what is charged for beside tokens. */
import type { Served, Unit } from '../core/cost.js'
import { decimalText, readDecimal, shifted } from '../core/decimal.js'
import type { ServedRules, ToldAt } from '../protocols/served-rules.js'
import { valueAt, type JsonObject } from '../core/json-object.js'
import type { Plan } from './plan.js'

/** More searches, or seconds, no reply has: a mistake of the provider's, after which all that is counted later would be lost. */
const maxCount = 1e6

/** Names, ids and words are short; what an upstream writes in their place goes into log lines, spans and records. */
const maxTextLength = 256

const facts = ['tier', 'speed', 'region'] as const

type Fact = typeof facts[number]

/** A header of the reply, null where it has none. */
export type ReadHeader = (name: string) => string | null

/** What documents told, outside of their usage objects: a later one's word counts. */
export interface Outside {
  tier: string | null
  speed: string | null
  region: string | null
  /** By unit. */
  counts: Partial<Record<Unit, number>>
}

export const nothingOutside = (): Outside => ({ tier: null, speed: null, region: null, counts: {} })

/** Takes from the findings of one document what stands outside of its usage objects. */
export function takeOutside (outside: Outside, found: readonly unknown[], { slots }: Plan): void {
  for (const fact of facts) outside[fact] = textIn(found, slots[fact]) ?? outside[fact]
  for (const { unit, reply, is, but, butIs } of slots.counts) {
    const all = countIn(found, reply, is)
    // A later document that has fewer takes none back.
    if (all === null || all === 0) continue
    outside.counts[unit] = Math.max(outside.counts[unit] ?? 0, all - (countIn(found, but, butIs) ?? 0))
  }
}

/** A number that was found, or how many gathered texts are among some. Null for nothing. */
function countIn (found: readonly unknown[], slots: readonly number[], words: readonly string[]): number | null {
  for (const slot of slots) {
    const value = found[slot]
    if (typeof value === 'number') return value
    if (Array.isArray(value)) return value.filter((text) => words.includes(text)).length
  }
  return null
}

/** All that a reply told, null for nothing. `usage`: its usage object; `header`: reads a header of it. */
export function servedOf (
  outside: Outside, usage: JsonObject | null, tools: Served['tools'], header: ReadHeader, { rules: { served: rules }, slots }: Plan
): Served | null {
  const tier = factOf('tier', outside, usage, header, rules)
  const speed = factOf('speed', outside, usage, header, rules)
  const region = factOf('region', outside, usage, header, rules)
  const { counts } = outside
  if (usage !== null) addCounts(counts, usage, slots.counts)
  const statedCost = usage === null ? null : costIn(usage, rules.cost)
  const isNothing = tier === null && speed === null && region === null && tools === null && statedCost === null
  return isNothing && Object.keys(counts).length === 0 ? null : { tier, speed, region, counts, tools, statedCost }
}

function factOf (fact: Fact, outside: Outside, usage: JsonObject | null, header: ReadHeader, rules: ServedRules): string | null {
  const at: ToldAt = rules[fact]
  const inside = usage === null ? null : firstText(usage, at.usage)
  const word = (outside[fact] ?? inside ?? (at.header === null ? null : header(at.header)))?.toLowerCase().slice(0, maxTextLength)
  if (word === undefined) return null
  return rules.words[word] ?? word
}

function firstText (usage: JsonObject, paths: readonly string[]): string | null {
  for (const path of paths) {
    const value = usage[path]
    if (typeof value === 'string' && value !== '') return value
  }
  return null
}

function addCounts (counts: Partial<Record<Unit, number>>, usage: JsonObject, rules: Plan['slots']['counts']): void {
  for (const { unit, inside } of rules) {
    for (const path of inside) {
      const value = valueAt(usage, path)
      if (typeof value === 'number' && value >= 0 && value <= maxCount) counts[unit] = value
    }
  }
}

function costIn (usage: JsonObject, places: ServedRules['cost']): string | null {
  for (const { usage: path, exponent } of places) {
    const value = usage[path]
    const cost = typeof value === 'number' && value >= 0 ? readDecimal(String(value)) : null
    if (cost !== null) return decimalText(shifted(cost, -exponent))
  }
  return null
}

/** The last text that stands at one of the slots; an empty one tells nothing. */
export function textIn (found: readonly unknown[], slots: readonly number[]): string | null {
  for (const slot of slots) {
    const value = found[slot]
    if (typeof value === 'string' && value !== '') return value.slice(0, maxTextLength)
  }
  return null
}
