/**
 * Fast path for the sum of a bill that has nothing but tokens at the common prices, as nearly all have: one product per leaf, in whole
 * numbers of one power of ten. The lines of a bill take several times as long, and are made only when read.
 */
import type { Served } from '../core/money/cost.js'
import { unitsIn, type Decimal } from '../core/money/decimal.js'
import { leaves, tokensOf, totalTokens } from '../core/call/measures.js'
import type { TokenUsage } from '../core/types.js'
import { isCommonlyServed, stepFor, type Bill } from './bill.js'
import { kindRates, type PlainSheet, type PriceRow, type Rates, type Scale, type Sheet } from './price-row.js'

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

/** Images are among the tokens if those were reported. */
function isPlainly (served: Served): boolean {
  const { tools, counts: { search = 0, file_search: files = 0, container = 0, second = 0 } } = served
  return tools === null && search === 0 && files === 0 && container === 0 && second === 0 && isCommonlyServed(served)
}

/** Counts are whole and never negative, so if the sum is safe, every step of it was exact. */
function sumOf (usage: TokenUsage, scale: Scale): Decimal | null {
  const units = charge(usage.input, scale.input) + charge(usage.cache_read, scale.cache_read) +
    charge(usage.cache_write_5m, scale.cache_write_5m) + charge(usage.cache_write_1h, scale.cache_write_1h) +
    charge(usage.cache_write, scale.cache_write) + charge(usage.tool_input, scale.tool_input) +
    charge(usage.output, scale.output) + charge(usage.reasoning, scale.reasoning)
  return totalTokens(usage) > 0 && Number.isSafeInteger(units) ? { units, places: scale.places } : null
}

/** A leaf that was not used needs no rate. */
function charge (count: number, rate: number): number {
  return count === 0 ? 0 : count * rate
}

/** For `PriceRow.plain`: made once, when a list is read. */
export function plainSheet ({ rates, above }: Sheet, each: PriceRow['each']): PlainSheet | null {
  if (each.has('request')) return null
  return {
    scale: scaleOf(rates),
    above: above.map(({ inputTokens, inclusive, rates }) => ({ inputTokens, inclusive, scale: scaleOf(rates) })),
  }
}

function scaleOf (rates: Rates): Scale {
  const places = Math.max(...leaves.map(({ type }) => rates.get(type)?.places ?? 0))
  const units = (type: keyof TokenUsage): number => {
    const rate = rates.get(type)
    const whole = rate === undefined ? NaN : unitsIn(rate, places)
    return typeof whole === 'number' ? whole : NaN
  }
  // One literal, so that the objects of all rows have the same shape.
  return {
    input: units('input'),
    cache_read: units('cache_read'),
    cache_write_5m: units('cache_write_5m'),
    cache_write_1h: units('cache_write_1h'),
    cache_write: units('cache_write'),
    tool_input: units('tool_input'),
    output: units('output'),
    reasoning: units('reasoning'),
    places,
    hasKinds: kindRates.some((name) => rates.has(name)),
  }
}
