/**
 * The sum of a bill that has nothing but tokens at the common prices, as nearly all have: one product for each leaf, in whole numbers
 * of one power of ten. Its lines take several times as long, and are made for who reads them.
 */
import type { Served } from '../core/cost.js'
import { unitsIn, type Decimal } from '../core/decimal.js'
import { leaves, leafTokens, tokensOf } from '../core/measures.js'
import type { TokenUsage } from '../core/types.js'
import { isCommonlyServed, ratesFor, type Bill } from './cost-of.js'
import { kinds, type PriceRow, type Rates } from './price-row.js'

/** Null for any other bill, and for a sum that is no safe integer. */
export function plainSum ({ usage, modalities, served, factor }: Bill, { sheet, each }: PriceRow): Decimal | null {
  if (usage === null || factor.units !== 1 || factor.places !== 0 || each.has('request')) return null
  if (served !== null && !isPlainly(served)) return null
  const scale = scaleOf(sheet.above.length === 0 ? sheet.rates : ratesFor(sheet, tokensOf(usage, 'input')))
  return modalities !== null && scale.hasKinds ? null : sumOf(usage, scale)
}

/** Pictures are among the tokens where those were told. */
function isPlainly (served: Served): boolean {
  const { tools, counts: { search = 0, file_search: files = 0, second = 0 } } = served
  return tools === null && search === 0 && files === 0 && second === 0 && isCommonlyServed(served)
}

/** What a token of each leaf costs, in the order of `leaves`. */
interface Scale {
  /** Whole numbers of 10 to the power of -`places`; NaN where there is no rate, or none that a number holds exactly. */
  readonly units: readonly number[]
  readonly places: number
  /** Some kind of content has a rate of its own. */
  readonly hasKinds: boolean
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

/** A list that was read does not change. */
const scales = new WeakMap<Rates, Scale>()

function scaleOf (rates: Rates): Scale {
  const known = scales.get(rates)
  if (known !== undefined) return known
  const ofLeaves = leaves.map(({ type }) => rates.get(type) ?? null)
  const places = Math.max(...ofLeaves.map((rate) => rate?.places ?? 0))
  const units = ofLeaves.map((rate) => rate === null ? NaN : numberIn(rate, places))
  const scale = { units, places, hasKinds: kinds.some((kind) => rates.has(`input_${kind}`) || rates.has(`output_${kind}`)) }
  scales.set(rates, scale)
  return scale
}

function numberIn (rate: Decimal, places: number): number {
  const units = unitsIn(rate, places)
  return typeof units === 'number' ? units : NaN
}
