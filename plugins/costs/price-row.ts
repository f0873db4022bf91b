/** What a price list says of one model, whichever form it was written in. */
import { leaves } from '../core/call/measures.js'
import type { BilledUnit } from '../core/money/cost.js'
import { isSame, type Decimal } from '../core/money/decimal.js'
import type { TokenUsage } from '../core/types.js'

/** Kinds of content whose tokens may have a rate of their own. All others have the rate of their leaf. */
export const kinds: readonly string[] = ['audio', 'image', 'video']

export const kindRates: readonly string[] = kinds.flatMap((kind) => [`input_${kind}`, `cache_read_${kind}`, `output_${kind}`])

/** Everything that has a rate per token. */
export const rateNames: readonly string[] = [...leaves.map(({ type }) => type), ...kindRates]

/** Everything that has a price per unit. `searched`: once for a request that searched; `request`: for each request. */
export type EachName = BilledUnit | 'searched' | 'request'
export const eachNames: readonly EachName[] = ['search', 'file_search', 'container', 'image', 'second', 'searched', 'request']

/** Price of one token, by rate name. */
export type Rates = ReadonlyMap<string, Decimal>

/** Rates of a request whose input is larger. They apply to all of its tokens. */
export interface Step {
  readonly inputTokens: number
  /** The step applies at `inputTokens`, too, and not only above. */
  readonly inclusive: boolean
  readonly rates: Rates
}

/** Rates by the size of the input; steps in ascending order. */
export interface Sheet {
  readonly rates: Rates
  readonly above: readonly Step[]
}

/** For requests that are served in a certain way: another price list, or a factor on the common one. */
export type Variant = { readonly sheet: Sheet } | { readonly factor: Decimal }

/**
 * Price of a token of each leaf, in whole numbers of 10 to the power of -`places`; NaN if there is no rate, or none that a number holds
 * exactly.
 */
export interface Scale extends Readonly<Record<keyof TokenUsage, number>> {
  readonly places: number
  /** Some kind of content has a rate of its own. */
  readonly hasKinds: boolean
}

/** A sheet of a row, prepared for bills of nothing but tokens. */
export interface PlainSheet {
  readonly scale: Scale
  readonly above: ReadonlyArray<{ readonly inputTokens: number, readonly inclusive: boolean, readonly scale: Scale }>
}

export interface PriceRow {
  readonly sheet: Sheet
  /** The same, prepared for such bills; null if each request costs something besides. */
  readonly plain: PlainSheet | null
  readonly tiers: ReadonlyMap<string, Variant>
  readonly speeds: ReadonlyMap<string, Variant>
  /** Factors on the rates of tokens. */
  readonly regions: ReadonlyMap<string, Decimal>
  readonly each: ReadonlyMap<EachName, Decimal>
  /** Rates of models that the reply's tools use. */
  readonly tools: Sheet
  /** Valid for requests that started at `from` or later, and before `until`. Milliseconds since the epoch. */
  readonly from: number
  readonly until: number
  /** As it was written, for its digest and for display. */
  readonly source: unknown
}

/** With the prices of kinds in `common` that are not those of their leaves, unless there are none at all. */
export function withKinds (rates: Rates, common: Rates = rates): Rates {
  const isKept = ([name, rate]: [string, Decimal]): boolean =>
    kindRates.includes(name) && !isSame(rate, common.get(name.replace(/_[a-z]+$/, '')))
  return rates.size === 0 ? rates : new Map([...[...common].filter(isKept), ...rates])
}
