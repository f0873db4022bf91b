/** What a price list says of one model, whichever form it was written in. */
import { leaves } from '../core/call/measures.js'
import type { BilledUnit } from '../core/money/cost.js'
import type { Decimal } from '../core/money/decimal.js'
import type { TokenUsage } from '../core/types.js'

/** Kinds of content whose tokens may have a rate of their own. All others have that of their leaf. */
export const kinds: readonly string[] = ['audio', 'image', 'video']

/** Everything that has a rate for each token. */
export const rateNames: readonly string[] = [
  ...leaves.map(({ type }) => type),
  ...kinds.flatMap((kind) => [`input_${kind}`, `output_${kind}`]),
]

/** Everything that has a price for each one. `searched` and `request`: once for a request that searched, and for each. */
export type EachName = BilledUnit | 'searched' | 'request'
export const eachNames: readonly EachName[] = ['search', 'file_search', 'image', 'second', 'searched', 'request']

/** Price of one token, by rate name. */
export type Rates = ReadonlyMap<string, Decimal>

/** Rates of a request whose input is larger. All of its tokens have them. */
export interface Step {
  readonly inputTokens: number
  /** From `inputTokens` on, and not only above. */
  readonly inclusive: boolean
  readonly rates: Rates
}

/** Rates by the size of the input; steps from the smallest. */
export interface Sheet {
  readonly rates: Rates
  readonly above: readonly Step[]
}

/** Another price list for requests that are served in this way, or a factor on the common one. */
export type Variant = { readonly sheet: Sheet } | { readonly factor: Decimal }

/**
 * What a token of each leaf costs, in whole numbers of 10 to the power of -`places`; NaN where there is no rate, or none that a
 * number holds exactly.
 */
export interface Scale extends Readonly<Record<keyof TokenUsage, number>> {
  readonly places: number
  /** Some kind of content has a rate of its own. */
  readonly hasKinds: boolean
}

/** A sheet of a row, made ready for bills of nothing but tokens. */
export interface PlainSheet {
  readonly scale: Scale
  readonly above: ReadonlyArray<{ readonly inputTokens: number, readonly inclusive: boolean, readonly scale: Scale }>
}

export interface PriceRow {
  readonly sheet: Sheet
  /** The same; null where each request costs something besides. */
  readonly plain: PlainSheet | null
  readonly tiers: ReadonlyMap<string, Variant>
  readonly speeds: ReadonlyMap<string, Variant>
  /** Factors on the rates of tokens. */
  readonly regions: ReadonlyMap<string, Decimal>
  readonly each: ReadonlyMap<EachName, Decimal>
  /** Of models that the reply's tools use. */
  readonly tools: Sheet
  /** Holds for requests that started from then on, and before then. Milliseconds since the epoch. */
  readonly from: number
  readonly until: number
  /** As it was written, for its digest and for whoever asks. */
  readonly source: unknown
}

/** A place in a price list: keys and indexes from its top. */
export type Path = ReadonlyArray<string | number>

export interface PriceProblem {
  readonly path: Path
  readonly message: string
}

/** Takes down what is wrong with a price list, as it is found. */
export type Report = (path: Path, message: string) => void
