/** What documents report outside of their usage objects. */
import type { BilledUnit } from '../core/money/cost.js'
import { largestOf } from '../core/money/paid-tools.js'
import { maxTextLength, textIn } from './findings.js'
import type { Plan } from './plan.js'

/** No reply has more searches or seconds. A larger number is a provider's mistake, and would make later sums useless. */
const maxCount = 1e6
/** The most different texts that are counted; real replies have fewer. */
const maxTexts = 1_000

const facts = ['tier', 'speed', 'region'] as const

export type Fact = typeof facts[number]

/** What documents reported outside of their usage objects. Later documents win. */
export interface Outside extends Record<Fact, string | null> {
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
    const count = amountIn(found, rule, outside)
    // A later document with fewer does not lower the count.
    if (count !== null) outside.counts[rule.unit] = Math.max(outside.counts[rule.unit] ?? 0, count)
  }
}

/** The first count at one of the places, or of all different texts at any of them; null for none. */
function amountIn (found: readonly unknown[], rule: Plan['slots']['counts'][number], outside: Outside): number | null {
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

export function isAmount (value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= maxCount
}
