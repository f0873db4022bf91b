/** What a request costs, by the price lists. */
import type { Cost, Served, SettledCost } from '../core/money/cost.js'
import type { ModelCall } from '../core/call/model-call.js'
import { linesOf, priceBill, type Bill } from './bill.js'
import { billionthsOf, decimalText, numberOf, one, type Decimal } from '../core/money/decimal.js'
import { plainSum } from './plain-bill.js'
import type { PriceRow } from './price-row.js'
import type { Match, PriceTable } from './price-table.js'

/** The names of a request's model, in the order of precedence. */
export interface ModelNames {
  readonly reply: string | null
  readonly asked: string | null
  readonly alias: string | null
}

/**
 * Finds the entry of a model: of the one that replied, then of the one asked for, then of its upstream's name for that. A request that
 * names no model has the prices of any model.
 */
export function matchOf (table: PriceTable, { reply, asked, alias }: ModelNames, time: number): Match | null {
  return table.find(reply, 'reply', time) ?? table.find(asked, 'asked', time) ?? table.find(alias, 'alias', time) ??
    table.find('', 'asked', time)
}

export function namesIn ({ usage, model, routing }: ModelCall): ModelNames {
  return { reply: usage.responseModel, asked: model, alias: routing.sentModel }
}

/** The row, with the prices of the model that tools asked if it has none for tools. */
export function withTools (table: PriceTable, row: PriceRow | null, served: Served | null, time: number): PriceRow | null {
  const model = served?.tools?.model
  if (row === null || model === undefined || row.tools.rates.size > 0) return row
  return { ...row, tools: table.find(model, 'reply', time)?.row?.sheet ?? row.tools }
}

/** The cost at the prices of the time of arrival. Null if the reply reported nothing that is charged. `factor`: of the upstream. */
export function costOf (table: PriceTable, llm: ModelCall, factor: Decimal = one): SettledCost | null {
  const { tokens: usage, modalities, served } = llm.usage
  if (usage === null && served === null) return null
  const match = matchOf(table, namesIn(llm), llm.arrivedAt)
  const row = withTools(table, match?.row ?? null, served, llm.arrivedAt)
  const bill = { usage, modalities, served, factor }
  const basis = { table, match, row, bill }
  const sum = row === null ? null : plainSum(bill, row)
  if (sum !== null) return new RequestCost(basis, sum, false)
  const priced = priceBill(bill, row)
  return priced === null ? null : new RequestCost(basis, priced.total, priced.unpriced)
}

/** What a request's cost is computed from. */
interface CostBasis {
  readonly table: PriceTable
  readonly match: Match | null
  readonly row: PriceRow | null
  readonly bill: Bill
}

class RequestCost implements SettledCost {
  readonly value: number | null
  readonly billionths: number
  readonly currency: string
  readonly unpriced: boolean
  readonly #basis: CostBasis
  #exact: Cost | null = null

  constructor (basis: CostBasis, total: Decimal | null, unpriced: boolean) {
    this.value = total === null ? null : numberOf(total)
    this.billionths = total === null ? 0 : billionthsOf(total)
    this.currency = basis.table.currency
    this.unpriced = unpriced
    this.#basis = basis
  }

  get exact (): Cost {
    this.#exact ??= this.#itemize()
    return this.#exact
  }

  #itemize (): Cost {
    const { table, match, row, bill } = this.#basis
    const { total, parts } = linesOf(bill, row)
    return {
      amount: total === null ? null : decimalText(total),
      billionths: this.billionths,
      currency: this.currency,
      parts,
      unpriced: this.unpriced,
      entry: match?.entry.key ?? null,
      by: match?.by ?? null,
      price: match?.row == null ? null : table.digest(match.row),
      factor: decimalText(bill.factor),
    }
  }
}
