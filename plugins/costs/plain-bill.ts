/**
 * The sum of a bill that has nothing but tokens at the common prices, as nearly all have: one product for each leaf, in whole numbers
 * of one power of ten. Its lines take several times as long, and are made for who reads them.
 */
import type { Served } from '../core/cost.js'
import { unitsIn, type Decimal } from '../core/decimal.js'
import { leaves, leafTokens, tokensOf } from '../core/measures.js'
import type { TokenUsage } from '../core/types.js'
import { isCommonlyServed, stepFor, type Bill } from './cost-of.js'
import { kinds, type PlainSheet, type PriceRow, type Rates, type Scale, type Sheet } from './price-row.js'

/** Null for any other bill, and for a sum that is no safe integer. */
export function plainSum ({ usage, modalities, served, factor }: Bill, { plain }: Pick<PriceRow, 'plain'>): Decimal | null {
  if (usage === null || plain === null || factor.units !== 1 || factor.places !== 0) return null
  if (served !== null && !isPlainly(served)) return null
  const scale = scaleFor(plain, usage)
  return modalities !== null && scale.hasKinds ? null : sumOf(usage, scale)
}

function scaleFor ({ scale, above }: PlainSheet, usage: TokenUsage): Scale {
  return above.length === 0 ? scale : stepFor(above, tokensOf(usage, 'input'))?.scale ?? scale
}

/** Pictures are among the tokens where those were told. */
function isPlainly (served: Served): boolean {
  const { tools, counts: { search = 0, file_search: files = 0, second = 0 } } = served
  return tools === null && search === 0 && files === 0 && second === 0 && isCommonlyServed(served)
}

/** Counts are whole and never below zero, so where the sum is safe, each step to it was exact. */
function sumOf (usage: TokenUsage, { units, places }: Scale): Decimal | null {
  const tokens = leafTokens(usage)
  let all = 0
  let sum = 0
  for (let at = 0; at < tokens.length; at++) {
    const count = Number(tokens[at])
    if (count === 0) continue
    all += count
    sum += count * Number(units[at])
  }
  return all > 0 && Number.isSafeInteger(sum) ? { units: sum, places } : null
}

/**
 * For `PriceRow.plain`. Made when a list is read and kept in the row: what is looked up at each request is far away in memory, and
 * waiting for that takes longer than the sum.
 */
export function plainSheet ({ rates, above }: Sheet, each: PriceRow['each']): PlainSheet | null {
  if (each.has('request')) return null
  return {
    scale: scaleOf(rates),
    above: above.map(({ inputTokens, inclusive, rates }) => ({ inputTokens, inclusive, scale: scaleOf(rates) })),
  }
}

function scaleOf (rates: Rates): Scale {
  const ofLeaves = leaves.map(({ type }) => rates.get(type) ?? null)
  const places = Math.max(...ofLeaves.map((rate) => rate?.places ?? 0))
  const units = ofLeaves.map((rate) => rate === null ? NaN : numberIn(rate, places))
  return { units, places, hasKinds: kinds.some((kind) => rates.has(`input_${kind}`) || rates.has(`output_${kind}`)) }
}

function numberIn (rate: Decimal, places: number): number {
  const units = unitsIn(rate, places)
  return typeof units === 'number' ? units : NaN
}
