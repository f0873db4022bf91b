/** What a request may cost, before it is known which upstream takes it and which model replies. */
import { billionthsOf, zero, type Decimal } from '../core/money/decimal.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { CostForecast } from '../core/money/pricing.js'
import { asksForNothing, dearer, estimateOf, waysOf, type Ways } from './estimate.js'
import { Outlooks, type Outlook, type PriceSource } from './outlook.js'
import type { PriceRow } from './price-row.js'
import { plainForecast } from './plain-forecast.js'
import { toolsCostOf } from './tools-cost.js'

interface ForecastRules extends PriceSource {
  /** Whether requests without a price are allowed: they cost nothing, and make no other price unknown. */
  readonly allowsUnpriced: boolean
}

type Rows = ReadonlyArray<PriceRow | null>

export class Forecast {
  readonly #rules: ForecastRules
  readonly #outlooks: Outlooks

  constructor (rules: ForecastRules) {
    this.#rules = rules
    this.#outlooks = new Outlooks(rules)
  }

  /** Whether there is a price now for each upstream that may take it, and for each of its substitute models. */
  isPriced (llm: ModelCall): boolean {
    return this.#rowsBefore(llm, this.#outlooks.of(llm)).every((row) => row !== null)
  }

  /** See `Pricing.forecast`. The most expensive of all possible cases. */
  forecast (llm: ModelCall, inputTokens: number, outputTokens: number): CostForecast | null {
    const plain = this.#plain(llm, inputTokens, outputTokens)
    if (plain !== null) return plain
    const ways = this.#waysOf(llm)
    const toolsCost = toolsCostOf(llm)
    const all = this.#most(ways, (each) => estimateOf(each, inputTokens, outputTokens, toolsCost(each.row)))
    const input = this.#most(ways, (each) => estimateOf(each, inputTokens, 0))
    return all === null || input === null ? null : { all, input }
  }

  /** See `Pricing.estimate`. */
  estimate (llm: ModelCall, inputTokens: number, outputTokens: number): number | null {
    return this.#most(this.#waysOf(llm), (each) => estimateOf(each, inputTokens, outputTokens, zero, llm.usage.tokens))
  }

  /** Fast path for nearly all requests: those with one price in all cases. The general way takes several times as long. */
  #plain (llm: ModelCall, inputTokens: number, outputTokens: number): CostForecast | null {
    const { usage: { responseModel }, routing: { upstream }, body: { substitutes } } = llm
    if (responseModel !== null || upstream !== null || substitutes.length > 0 || !asksForNothing(llm)) return null
    const { plain } = this.#outlooks.of(llm)
    return plain === null ? null : plainForecast(plain, inputTokens, outputTokens)
  }

  #most (ways: ReadonlyArray<Ways | null>, costOf: (ways: Ways) => Decimal | null): number | null {
    let most: Decimal | null = null
    for (const each of ways) {
      const cost = each === null ? null : costOf(each)
      if (cost !== null) most = dearer(most, cost)
      // The maximum is unknown if one of the prices is.
      else if (!this.#rules.allowsUnpriced) return null
    }
    return most === null ? null : billionthsOf(most)
  }

  #waysOf (llm: ModelCall): ReadonlyArray<Ways | null> {
    const outlook = this.#outlooks.of(llm)
    const { upstream } = llm.routing
    // The factor of the upstream that took it; before that, the largest of those that may.
    const factor = upstream === null ? outlook.factor : this.#rules.factorOf(upstream)
    return this.#rowsBefore(llm, outlook).map((row) => row === null ? null : waysOf(row, llm, factor))
  }

  /** Once the replying model is known, its row; before that, the rows of all that may reply. Null for one without a price. */
  #rowsBefore (llm: ModelCall, { rows }: Outlook): Rows {
    const { table } = this.#rules
    const replied = table.find(llm.usage.responseModel, 'reply', llm.arrivedAt)
    if (replied !== null) return [replied.row]
    const { substitutes } = llm.body
    // A caller may name a cheap model first, and an expensive one as its fallback.
    return substitutes.length === 0 ? rows : [...rows, ...this.#rowsOf(llm, substitutes)]
  }

  #rowsOf (llm: ModelCall, names: readonly string[]): Rows {
    const others = names.filter((name) => name !== llm.model)
    return [...new Set(others.map((name) => this.#rules.table.find(name, 'asked', llm.arrivedAt)?.row ?? null))]
  }
}
