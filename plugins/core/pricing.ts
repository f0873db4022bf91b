import type { ModelCall } from './model-call.js'

/** Prices, before there is a reply. Null in `gateway.pricing` where none are configured. */
export interface Pricing {
  /** ISO 4217. */
  readonly currency: string
  /** False: no list has an entry, and nothing costs anything. */
  readonly hasPrices: boolean
  /** Said on purpose: models without a price are let through, also where a budget is in money. */
  readonly unpriced?: 'allow'
  /**
   * The most that a request can cost, in whole billionths of the currency, rounded up; null where its model has no price.
   * What it asks for in its body (a tier, a speed) counts, and the dearest way in which its tokens may be charged. `withTools`: and what
   * the provider's own tools may cost that it lets be used, as often as it says, or once.
   */
  readonly estimate: (llm: ModelCall, inputTokens: number, outputTokens: number, withTools?: boolean) => number | null
}
