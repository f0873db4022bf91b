/** What a request may cost, before it is known which upstream takes it and which model replies. */
import { billionthsOf, type Decimal } from '../core/money/decimal.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { CostForecast } from '../core/money/pricing.js'
import { asksForNothing, dearer, estimateOf, waysOf, type Ways } from './estimate.js'
import { Outlooks, type Outlook, type PriceSource } from './outlook.js'
import type { PriceRow } from './price-row.js'
import { plainForecast } from './plain-forecast.js'
import { toolsCost } from './tools-cost.js'

export interface ForecastRules extends PriceSource {
  /** What has no price is let through and costs nothing, so that it makes nothing else unknown. */
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

  /** Whatever upstream takes it, and whichever of the models that it names takes its place, there is a price for it now. */
  isPriced (llm: ModelCall): boolean {
    return this.#rowsBefore(llm, this.#outlooks.of(llm)).every((row) => row !== null)
  }

  /** See `Pricing.forecast`. The dearest of what it may become. */
  forecast (llm: ModelCall, inputTokens: number, outputTokens: number): CostForecast | null {
    const plain = this.#plain(llm, inputTokens, outputTokens)
    if (plain !== null) return plain
    const ways = this.#waysOf(llm)
    const all = this.#most(ways, (each) => estimateOf(each, inputTokens, outputTokens, toolsCost(each.row, llm)))
    const input = this.#most(ways, (each) => estimateOf(each, inputTokens, 0))
    return all === null || input === null ? null : { all, input }
  }

  /** See `Pricing.estimate`. */
  estimate (llm: ModelCall, inputTokens: number, outputTokens: number): number | null {
    return this.#most(this.#waysOf(llm), (each) => estimateOf(each, inputTokens, outputTokens))
  }

  /** That of nearly all requests, which have one price whatever becomes of them. The rest takes several times as long. */
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
      // Nobody knows the dearest where one of them is not known.
      else if (!this.#rules.allowsUnpriced) return null
    }
    return most === null ? null : billionthsOf(most)
  }

  #waysOf (llm: ModelCall): ReadonlyArray<Ways | null> {
    const outlook = this.#outlooks.of(llm)
    const { upstream } = llm.routing
    // That of the upstream that took it; before, the largest of those that may.
    const factor = upstream === null ? outlook.factor : this.#rules.factorOf(upstream)
    return this.#rowsBefore(llm, outlook).map((row) => row === null ? null : waysOf(row, llm, factor))
  }

  /** Once it is known who replied, that model's; before, those of all that may. Null for one without a price. */
  #rowsBefore (llm: ModelCall, { rows }: Outlook): Rows {
    const { table } = this.#rules
    const replied = table.find(llm.usage.responseModel, 'reply', llm.arrivedAt)
    if (replied !== null) return [replied.row]
    const { substitutes } = llm.body
    // A caller may name a cheap model first, and a dear one for when that fails.
    return substitutes.length === 0 ? rows : [...rows, ...this.#rowsOf(llm, substitutes)]
  }

  #rowsOf (llm: ModelCall, names: readonly string[]): Rows {
    const others = names.filter((name) => name !== llm.model)
    return others.map((name) => this.#rules.table.find(name, 'asked', llm.arrivedAt)?.row ?? null)
  }
}
