/**
 * Fast path for the most that a request may cost by a row that has nothing but rates of tokens, as nearly all have: two products in whole
 * numbers of one power of ten. The general way takes several times as long.
 */
import { billionthsOf, times, unitsIn, type Decimal } from '../core/money/decimal.js'
import type { CostForecast } from '../core/money/pricing.js'
import { dearestOf } from './estimate.js'
import type { PriceRow } from './price-row.js'

/** Maximum price of a token, including the factor of its upstream, in whole numbers of 10 to the power of -`places`. */
export interface PlainRates {
  readonly input: number
  readonly output: number
  readonly places: number
}

/** Null for any other row, and for rates that no number holds exactly. */
export function plainRates ({ each, sheet: { rates, above } }: PriceRow, upstream: Decimal): PlainRates | null {
  const dearest = dearestOf(rates)
  if (each.size > 0 || above.length > 0 || dearest.input === null || dearest.output === null) return null
  const ofInput = times(dearest.input, upstream)
  const ofOutput = times(dearest.output, upstream)
  const places = Math.max(ofInput.places, ofOutput.places)
  const input = unitsIn(ofInput, places)
  const output = unitsIn(ofOutput, places)
  return typeof input === 'number' && typeof output === 'number' ? { input, output, places } : null
}

/** Rates and counts are whole and never negative, so if the sum is safe, every step of it was exact. Null if it is not. */
export function plainForecast (rates: PlainRates, inputTokens: number, outputTokens: number): CostForecast | null {
  const { places } = rates
  const input = rates.input * inputTokens
  const all = input + rates.output * outputTokens
  if (!Number.isSafeInteger(all)) return null
  return { all: billionthsOf({ units: all, places }), input: billionthsOf({ units: input, places }) }
}
