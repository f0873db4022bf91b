/** What a request may cost, before it is known which upstream takes it and which model replies. */
import { billionthsOf, isLess, one, type Decimal } from '../core/decimal.js'
import type { ModelCall } from '../core/model-call.js'
import type { Upstream } from '../core/upstream.js'
import { dearer, estimateOf } from './estimate.js'
import type { PriceRow } from './price-row.js'
import type { PriceTable } from './price-table.js'
import { find, matchOf, startOf } from './pricing.js'
import { toolsCost } from './tools-cost.js'

/** What of an upstream makes a price. */
type Taker = Pick<Upstream, 'name' | 'models'>

export interface Forecast {
  readonly table: PriceTable
  /** The upstreams that may take a request; none where nobody knows. */
  readonly takersOf: (llm: ModelCall) => readonly Taker[]
  /** Of an upstream, by its name. */
  readonly factorOf: (upstream: string | null) => Decimal
  /** What has no price is let through and costs nothing, so that it makes nothing else unknown. */
  readonly allowsUnpriced: boolean
}

/** Whatever upstream takes it, and whichever of the models that it names takes its place, there is a price for it now. */
export function isPriced (forecast: Forecast, llm: ModelCall): boolean {
  return rowsBefore(forecast, llm).every((row) => row !== null)
}

/** See `Pricing.estimate`. The dearest of what it may become. */
export function estimate (
  forecast: Forecast, llm: ModelCall, inputTokens: number, outputTokens: number, withTools = false
): number | null {
  const factor = factorBefore(forecast, llm)
  const costs = rowsBefore(forecast, llm).map((row) => row === null
    ? null
    : estimateOf(row, llm, inputTokens, outputTokens, factor, withTools ? toolsCost(row, llm) : undefined))
  const counted = forecast.allowsUnpriced ? costs.filter((cost) => cost !== null) : costs
  const cost = counted.length === 0 ? null : counted.reduce(dearer)
  return cost === null ? null : billionthsOf(cost)
}

/** Once it is known who replied, that model's; before, those of all that may. Null for one without a price. */
function rowsBefore ({ table, takersOf }: Forecast, llm: ModelCall): ReadonlyArray<PriceRow | null> {
  const time = startOf(llm)
  const replied = find(table, llm.usage.responseModel, 'reply', time)
  if (replied !== null) return [replied.row]
  const rows = namedRows(table, llm, takersOf(llm), time)
  // A caller may name a cheap model first, and a dear one for when that fails.
  for (const other of llm.body.substitutes) {
    if (other !== llm.model) rows.push(find(table, other, 'asked', time)?.row ?? null)
  }
  return rows
}

/** By the name that was asked for, and by those that its upstreams have for it: a reply may tell either. */
function namedRows (table: PriceTable, llm: ModelCall, takers: readonly Taker[], time: number): Array<PriceRow | null> {
  const asked = matchOf(table, { reply: null, asked: llm.model, alias: null }, time)
  const rows = asked === null ? [] : [asked.row]
  for (const { models } of takers) {
    const row = find(table, models.get(llm.model ?? '') ?? null, 'alias', time)?.row ?? null
    if (asked === null || (row !== null && row !== asked.row)) rows.push(row)
  }
  return rows.length === 0 ? [null] : rows
}

/** That of the upstream that took it; before, the largest of those that may. */
function factorBefore ({ takersOf, factorOf }: Forecast, llm: ModelCall): Decimal {
  if (llm.routing.upstream !== null) return factorOf(llm.routing.upstream)
  let most: Decimal | null = null
  for (const { name } of takersOf(llm)) {
    const factor = factorOf(name)
    if (most === null || isLess(most, factor)) most = factor
  }
  return most ?? one
}
