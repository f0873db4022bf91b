/** What a request may cost, before it is known which upstream takes it and which model replies. */
import { billionthsOf, isLess, type Decimal } from '../core/decimal.js'
import type { ModelCall } from '../core/model-call.js'
import { estimateOf } from './estimate.js'
import { Outlooks, type Outlook, type PriceSource } from './outlook.js'
import type { PriceRow } from './price-row.js'
import { find, startOf } from './pricing.js'
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

  /** See `Pricing.estimate`. The dearest of what it may become. */
  estimate (llm: ModelCall, inputTokens: number, outputTokens: number, withTools = false): number | null {
    const outlook = this.#outlooks.of(llm)
    const { upstream } = llm.routing
    // That of the upstream that took it; before, the largest of those that may.
    const factor = upstream === null ? outlook.factor : this.#rules.factorOf(upstream)
    let most: Decimal | null = null
    for (const row of this.#rowsBefore(llm, outlook)) {
      const tools = withTools && row !== null ? toolsCost(row, llm) : undefined
      const cost = row === null ? null : estimateOf(row, llm, inputTokens, outputTokens, factor, tools)
      if (cost !== null && (most === null || isLess(most, cost))) most = cost
      // Nobody knows the dearest where one of them is not known.
      if (cost === null && !this.#rules.allowsUnpriced) return null
    }
    return most === null ? null : billionthsOf(most)
  }

  /** Once it is known who replied, that model's; before, those of all that may. Null for one without a price. */
  #rowsBefore (llm: ModelCall, { rows }: Outlook): Rows {
    const { table } = this.#rules
    const replied = find(table, llm.usage.responseModel, 'reply', startOf(llm))
    if (replied !== null) return [replied.row]
    const { substitutes } = llm.body
    // A caller may name a cheap model first, and a dear one for when that fails.
    return substitutes.length === 0 ? rows : [...rows, ...this.#rowsOf(llm, substitutes)]
  }

  #rowsOf (llm: ModelCall, names: readonly string[]): Rows {
    const others = names.filter((name) => name !== llm.model)
    return others.map((name) => find(this.#rules.table, name, 'asked', startOf(llm))?.row ?? null)
  }
}
