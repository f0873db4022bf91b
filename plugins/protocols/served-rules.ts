/**
 * Where replies state how they were served and what is charged besides tokens, as data for the readers in `plugins/usage/`. A path is a
 * list of object keys joined by dots; `*` is every element of an array, `#` the number of its elements, and `[]` at the end collects the
 * values of all elements.
 */

/** Where one fact is: in a reply or an event, inside a usage object, in a header of the reply. */
export interface ToldAt {
  readonly reply: readonly string[]
  /** Paths of keys. */
  readonly usage: ReadonlyArray<readonly string[]>
  readonly header: string | null
  /** The request's field that asks for it, in each spelling that upstreams accept; empty if there is none. */
  readonly asked: readonly string[]
  /** The request's header that does. */
  readonly askedBy: string | null
}

/** How a reply states the number of something. */
interface CountRule {
  readonly unit: 'search' | 'file_search' | 'container' | 'image' | 'second'
  /** Path of a number inside a usage object. */
  readonly usage: readonly string[]
  /** True if the number inside a usage object comes on top of what else is told. */
  readonly adds: boolean
  /** Paths of numbers, of numbers of elements, or of collected texts. The first that exists counts; if `is` is null, texts of all do. */
  readonly reply: readonly string[]
  /** Those of the paths whose texts count as one, however many they are. */
  readonly once: readonly string[]
  /** The collected texts that count; null: each distinct one of the whole reply. */
  readonly is: string | null
  /** Exceptions: paths of collected texts, and the texts that do not count. */
  readonly but: { readonly reply: readonly string[], readonly is: readonly string[] } | null
  /** Paths of collected sizes (`4g`): each counts as often as the largest says. */
  readonly sizes: readonly string[]
}

export interface ServedRules {
  readonly tier: ToldAt
  readonly speed: ToldAt
  readonly region: ToldAt
  /** A provider's words, in lower case, and their meaning; `standard` is the tier, speed and region of common prices. */
  readonly words: ReadonlyMap<string, string>
  readonly counts: readonly CountRule[]
  /** Places inside a usage object where the provider states the cost of the request, each with the power of ten of its unit. */
  readonly cost: readonly StatedCost[]
}

interface StatedCost {
  /** Path of keys. */
  readonly usage: readonly string[]
  readonly exponent: number
}

/** For what a protocol does not state. */
export const nowhere: ToldAt = { reply: [], usage: [], header: null, asked: [], askedBy: null }

/** Third parties state their cost, whichever protocol they speak: OpenRouter, Perplexity, xAI. */
export const statedCosts: readonly StatedCost[] = [
  { usage: ['cost'], exponent: 0 }, { usage: ['cost', 'total_cost'], exponent: 0 }, { usage: ['cost_in_usd_ticks'], exponent: -10 },
]

/** Asks Vertex AI for a tier, whichever protocol it speaks: https://docs.cloud.google.com/vertex-ai/generative-ai/docs/priority-paygo */
export const vertexTier = 'x-vertex-ai-llm-shared-request-type'

/** The defaults of most counts. */
export const plainCount: Omit<CountRule, 'unit'> = { usage: [], adds: false, reply: [], once: [], is: null, but: null, sizes: [] }
