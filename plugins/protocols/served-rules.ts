/**
 * Where replies tell how they were served and what is charged for beside tokens, as data for the readers in
 * `plugins/usage/`. A path is a list of object keys joined by dots; `*` is every element of an array, `#` the number of its
 * elements, and `[]` at the end gathers the values of all elements.
 */

/** Where one fact stands: in a reply or an event, inside a usage object, in a header of the reply. */
export interface ToldAt {
  readonly reply: readonly string[]
  /** Keys on the way. */
  readonly usage: ReadonlyArray<readonly string[]>
  readonly header: string | null
  /** The field of a request that asks for it, in each spelling that the upstream takes; none where none asks. */
  readonly asked: readonly string[]
}

/** How many of something a reply tells of. */
export interface CountRule {
  readonly unit: 'search' | 'file_search' | 'image' | 'second'
  /** A number inside a usage object. */
  readonly usage: readonly string[]
  /** Paths of numbers, of numbers of elements, or of gathered texts: the first that is there counts. */
  readonly reply: readonly string[]
  /** Of gathered texts, those that count; null for each once, in all of the reply. */
  readonly is: string | null
  /** What of these does not count: paths of gathered texts, and those texts. */
  readonly but: { readonly reply: readonly string[], readonly is: readonly string[] } | null
}

export interface ServedRules {
  readonly tier: ToldAt
  readonly speed: ToldAt
  readonly region: ToldAt
  /** Words of the provider's, in lower case, that mean another word; `standard` is the tier, speed and region of common prices. */
  readonly words: Readonly<Record<string, string>>
  readonly counts: readonly CountRule[]
  /** Places inside a usage object where the provider says what the request costs, each with the power of ten of its unit. */
  readonly cost: readonly StatedCost[]
}

interface StatedCost {
  /** Keys on the way. */
  readonly usage: readonly string[]
  readonly exponent: number
}

/** For what a protocol does not tell. */
export const nowhere: ToldAt = { reply: [], usage: [], header: null, asked: [] }

/** Third parties state their cost, whichever protocol they speak: OpenRouter, Perplexity, xAI. */
export const statedCosts: readonly StatedCost[] = [
  { usage: ['cost'], exponent: 0 }, { usage: ['cost', 'total_cost'], exponent: 0 }, { usage: ['cost_in_usd_ticks'], exponent: -10 },
]

/** What most counts do without. */
export const plainCount: Omit<CountRule, 'unit'> = { usage: [], reply: [], is: null, but: null }
