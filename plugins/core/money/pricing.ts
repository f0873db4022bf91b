import type { ModelCall } from '../call/model-call.js'

/** Prices, before there is a reply. Null in `gateway.pricing` where none are configured. */
export interface Pricing {
  /** ISO 4217. */
  readonly currency: string
  /** False: no list has an entry, and nothing costs anything. */
  readonly hasPrices: boolean
  /** Said on purpose: models without a price are let through, also where a budget is in money. */
  readonly unpriced?: 'allow'
  /**
   * The most that a request with so many tokens can cost; null where its model has no price. What it asks for in its body (a tier, a
   * speed) counts, the dearest way in which its tokens may be charged, and what the provider's own tools may cost that it lets be used,
   * as often as it says, or once.
   */
  readonly forecast: (llm: ModelCall, inputTokens: number, outputTokens: number) => CostForecast | null
  /** The same in one sum, of tokens alone: for a reply that broke off. */
  readonly estimate: (llm: ModelCall, inputTokens: number, outputTokens: number) => number | null
  /**
   * What a request that is over cost, its tokens that have no price at the dearest at which they may be charged; null where nobody knows
   * that either.
   */
  readonly atMost: (llm: ModelCall) => number | null
}

/** In whole billionths of the currency, rounded up. */
export interface CostForecast {
  /** What of `all` is for the tokens of the request itself. */
  readonly input: number
  readonly all: number
}
