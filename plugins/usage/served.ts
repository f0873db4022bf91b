/** What a reply reports of how it was served, and of what is charged besides tokens. */
import type { Served, BilledUnit } from '../core/money/cost.js'
import { decimalText, readDecimal, shifted } from '../core/money/decimal.js'
import type { ServedRules, ToldAt } from '../protocols/served-rules.js'
import { valueAt, type JsonObject } from '../core/body/json-object.js'
import { maxTextLength } from './findings.js'
import { isAmount, type Fact, type Outside } from './outside.js'
import type { Plan } from './plan.js'

/** A header of the reply, null where it has none. */
export type ReadHeader = (name: string) => string | null

/** Everything that a reply reported, null for nothing. `usage`: its usage object, empty for none; `header`: reads a header of the reply. */
export function servedOf (
  outside: Outside, usage: JsonObject, tools: Served['tools'], header: ReadHeader, { rules: { served: rules }, slots }: Plan
): Served | null {
  const tier = factOf('tier', outside, usage, header, rules)
  const speed = factOf('speed', outside, usage, header, rules)
  const region = factOf('region', outside, usage, header, rules)
  const { counts } = outside
  addCounts(counts, usage, slots.counts)
  const statedCost = costIn(usage, rules.cost)
  const isNothing = tier === null && speed === null && region === null && tools === null && statedCost === null
  return isNothing && Object.keys(counts).length === 0 ? null : { tier, speed, region, counts, tools, statedCost }
}

function factOf (fact: Fact, outside: Outside, usage: JsonObject, header: ReadHeader, rules: ServedRules): string | null {
  const at: ToldAt = rules[fact]
  const told = outside[fact] ?? firstText(usage, at.usage) ?? (at.header === null ? null : header(at.header))
  const word = told?.toLowerCase().slice(0, maxTextLength)
  if (word === undefined) return null
  return rules.words.get(word) ?? word
}

function firstText (usage: JsonObject, paths: ReadonlyArray<readonly string[]>): string | null {
  for (const path of paths) {
    const value = valueAt(usage, path)
    if (typeof value === 'string' && value !== '') return value
  }
  return null
}

function addCounts (counts: Partial<Record<BilledUnit, number>>, usage: JsonObject, rules: Plan['slots']['counts']): void {
  for (const { unit, adds, inside } of rules) {
    let most = -1
    for (const path of inside) {
      const value = valueAt(usage, path)
      // One place may have 0 for what another one tells.
      if (isAmount(value) && value > most) most = value
    }
    if (most >= 0) counts[unit] = most + (adds ? counts[unit] ?? 0 : 0)
  }
}

function costIn (usage: JsonObject, places: ServedRules['cost']): string | null {
  for (const { usage: path, exponent } of places) {
    const value = valueAt(usage, path)
    const cost = typeof value === 'number' && value >= 0 ? readDecimal(String(value)) : null
    if (cost !== null) return decimalText(shifted(cost, -exponent))
  }
  return null
}
