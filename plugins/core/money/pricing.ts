import type { ModelCall } from '../call/model-call.js'

/** Prices, for use before there is a reply. `gateway.pricing` is null without them. */
export interface Pricing {
  /** ISO 4217. */
  readonly currency: string
  /** False: no list has an entry, and nothing costs anything. */
  readonly hasPrices: boolean
  /** Set by the operator: models without a price are let through, even beside a budget in money. */
  readonly unpriced?: 'allow'
  /**
   * The most that a request with so many tokens can cost; null if its model has no price. Takes into account what its body asks for (a
   * tier, a speed), the most expensive way in which its tokens may be charged, and the provider's own tools that it allows, as often as it
   * says, or once.
   */
  readonly forecast: (llm: ModelCall, inputTokens: number, outputTokens: number) => CostForecast | null
  /** The same as one sum, for tokens only: for a reply that broke off. */
  readonly estimate: (llm: ModelCall, inputTokens: number, outputTokens: number) => number | null
  /**
   * What a finished request cost at most: tokens without a price count at the highest one that may apply. Null if there is none
   * either.
   */
  readonly atMost: (llm: ModelCall) => number | null
}

/** In whole billionths of the currency, rounded up. */
export interface CostForecast {
  /** What of `all` is for the tokens of the request itself. */
  readonly input: number
  readonly all: number
}
