/** What a request costs, as plugins tell it to each other. */
import type { ModalityTokens, TokenUsage } from '../types.js'

/** What a provider may charge for beside tokens. */
export type BilledUnit = 'search' | 'file_search' | 'container' | 'image' | 'second'

/** What a reply says of how it was served and of what it is charged for beside its own tokens. */
export interface Served {
  /** As the reply has it, in lower case; `standard` where it says so in a word of its own. Null where it tells none. */
  readonly tier: string | null
  readonly speed: string | null
  readonly region: string | null
  /** How many of each; an absent one was not told. */
  readonly counts: Readonly<Partial<Record<BilledUnit, number>>>
  /** Tokens of models that the reply's tools used, at prices of their own: part of the request's usage, unless `model` tells whose. */
  readonly tools: { readonly usage: TokenUsage, readonly modalities: readonly ModalityTokens[], readonly model?: string } | null
  /** What the provider says that it costs, as exact decimal text; kept beside our own figure. */
  readonly statedCost: string | null
}

/** One line of a bill. */
export interface CostPart {
  /** A leaf of the usage, a kind of content of one (`input_audio`), or a unit; behind `tools.` for what tools used. */
  readonly name: string
  /** How many tokens, or of the unit. */
  readonly units: number
  /** Exact decimal text; null if the price list has no rate for it. */
  readonly amount: string | null
}

/** The cost of a request that is over. */
export interface SettledCost {
  /** The nearest number to the amount, for what adds up floats; null where nothing has a price. */
  readonly value: number | null
  /** See `Cost`. */
  readonly billionths: number
  readonly currency: string
  readonly unpriced: boolean
  /** All of it in exact texts, which are made for the first who reads them. */
  readonly exact: Cost
}

/** What one request cost. Every amount is exact: decimal text, never a float. */
export interface Cost {
  /** The sum of the parts that have a price, as decimal text; null if none has one. */
  readonly amount: string | null
  /** The same in whole billionths of the currency, rounded up: what budgets count. */
  readonly billionths: number
  readonly currency: string
  readonly parts: readonly CostPart[]
  /** True if some part, or all of it, has no price. */
  readonly unpriced: boolean
  /** Name of the entry in the price list, a model or a glob; null if none matches. */
  readonly entry: string | null
  /** The name that matched it: of the model that replied, of the one asked for, or the upstream's name for that one. */
  readonly by: 'reply' | 'asked' | 'alias' | null
  /** Digest of the entry, 16 hex digits. */
  readonly price: string | null
  /** The upstream's `priceFactor`, as decimal text. */
  readonly factor: string
}
