/** What a reply reports of how it was served, and of what is charged besides tokens. */
import type { Served, BilledUnit } from '../core/money/cost.js'
import { largestOf } from '../core/money/paid-tools.js'
import { decimalText, readDecimal, shifted } from '../core/money/decimal.js'
import type { ServedRules, ToldAt } from '../protocols/served-rules.js'
import { valueAt, type JsonObject } from '../core/body/json-object.js'
import type { Plan } from './plan.js'

/** No reply has more searches or seconds. A larger number is a provider's mistake, and would make later sums useless. */
const maxCount = 1e6

/** Names, ids and words are short. They are cut at this length, because they go into log lines, spans and records. */
const maxTextLength = 256
/** The most different texts that are counted; real replies have fewer. */
const maxTexts = 1_000

const facts = ['tier', 'speed', 'region'] as const

type Fact = typeof facts[number]

/** A header of the reply, null where it has none. */
export type ReadHeader = (name: string) => string | null

/** What documents reported outside of their usage objects. Later documents win. */
export interface Outside {
  tier: string | null
  speed: string | null
  region: string | null
  /** By unit. */
  counts: Partial<Record<BilledUnit, number>>
  /** Texts that count once each. */
  texts: Set<string> | null
}

export const nothingOutside = (): Outside => ({ tier: null, speed: null, region: null, counts: {}, texts: null })

/** Takes from the findings of one document what is outside of its usage objects. */
export function takeOutside (outside: Outside, found: readonly unknown[], { slots }: Plan): void {
  for (const fact of facts) outside[fact] = textIn(found, slots[fact]) ?? outside[fact]
  for (const rule of slots.counts) {
    const count = countIn(found, rule, outside)
    // A later document with fewer does not lower the count.
    if (count !== null) outside.counts[rule.unit] = Math.max(outside.counts[rule.unit] ?? 0, count)
  }
}

/** The first count at one of the places, or of all different texts at any of them; null for none. */
function countIn (found: readonly unknown[], rule: Plan['slots']['counts'][number], outside: Outside): number | null {
  const { reply, once, is, but, butIs, sizes } = rule
  let different = 0
  for (const slot of reply) {
    const value = found[slot]
    if (isAmount(value)) return value === 0 ? null : value
    if (!Array.isArray(value)) continue
    if (is === null) {
      different = differing(value, slot, once.includes(slot) ? 0 : maxTextLength, outside)
      continue
    }
    const all = among(value, [is])
    return all === 0 ? null : all - but.reduce((sum, other) => sum + among(found[other], butIs), 0)
  }
  return different === 0 ? null : different * largestOf(sizes.flatMap((slot) => found[slot] ?? []))
}

/** How many of the gathered texts are among `words`. */
function among (gathered: unknown, words: readonly string[]): number {
  return Array.isArray(gathered) ? gathered.filter((text) => words.includes(text)).length : 0
}

/** How many different texts, not empty, the reply has so far, by their beginnings: one of each place may be the same. */
function differing (gathered: readonly unknown[], slot: number, length: number, outside: Outside): number {
  const texts = outside.texts ??= new Set()
  for (const text of gathered) {
    if (typeof text === 'string' && text !== '' && texts.size < maxTexts) texts.add(`${slot} ${text.slice(0, length)}`)
  }
  return texts.size
}

function isAmount (value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= maxCount
}

/** Everything that a reply reported, null for nothing. `usage`: its usage object; `header`: reads a header of the reply. */
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

/** The text at the first of the slots that has one; empty texts do not count. */
export function textIn (found: readonly unknown[], slots: readonly number[]): string | null {
  for (const slot of slots) {
    const value = found[slot]
    if (typeof value === 'string' && value !== '') return value.slice(0, maxTextLength)
  }
  return null
}
