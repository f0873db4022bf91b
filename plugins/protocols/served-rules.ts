/**
 * Where replies tell how they were served and what is charged for beside tokens, as data for the readers in
 * `plugins/usage/`. A path is a list of object keys joined by dots; `*` is every element of an array, `#` the number of its
 * elements, and `[]` at the end gathers the values of all elements.
 */

/** Where one fact stands: in a reply or an event, inside a usage object, in a header of the reply. */
export interface ToldAt {
  readonly reply: readonly string[]
  readonly usage: readonly string[]
  readonly header: string | null
  /** The field of a request that asks for it. */
  readonly asked: string | null
}

/** How many of something a reply tells of. */
export interface CountRule {
  readonly unit: 'search' | 'file_search' | 'image' | 'second'
  /** A number inside a usage object. */
  readonly usage: readonly string[]
  /** Paths of numbers of elements, or of gathered texts. */
  readonly reply: readonly string[]
  /** Of gathered texts, those that count; null for all. */
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
  readonly cost: ReadonlyArray<{ readonly usage: string, readonly exponent: number }>
}

const nowhere: ToldAt = { reply: [], usage: [], header: null, asked: null }
const count: Omit<CountRule, 'unit'> = { usage: [], reply: [], is: null, but: null }

/**
 * https://platform.openai.com/docs/api-reference/chat/object (`service_tier`): the tier that served it, which may differ from
 * the one asked for; `fast` is answered as `priority`. Others of the family state their own cost inside the usage.
 */
export const openaiServed: ServedRules = {
  tier: { ...nowhere, reply: ['service_tier'], asked: 'service_tier' },
  speed: nowhere,
  region: nowhere,
  words: { default: 'standard', auto: 'standard', on_demand: 'standard', fast: 'priority' },
  counts: [{ ...count, unit: 'second', usage: ['seconds'] }],
  cost: [{ usage: 'cost', exponent: 0 }, { usage: 'cost_in_usd_ticks', exponent: -10 }],
}

/** A call of the search tool that opens a page or looks for words in it is no search. */
const otherActions = ['open_page', 'find_in_page', 'find']

export const responsesServed: ServedRules = {
  ...openaiServed,
  tier: { ...openaiServed.tier, reply: ['service_tier', 'response.service_tier'] },
  counts: [
    {
      ...count,
      unit: 'search',
      reply: ['output.*.type[]', 'response.output.*.type[]'],
      is: 'web_search_call',
      but: { reply: ['output.*.action.type[]', 'response.output.*.action.type[]'], is: otherActions },
    },
    { ...count, unit: 'file_search', reply: ['output.*.type[]', 'response.output.*.type[]'], is: 'file_search_call' },
  ],
}

/** Pictures, for models that are paid by the piece. */
export const imagesServed: ServedRules = { ...openaiServed, counts: [{ ...count, unit: 'image', reply: ['data.#'] }] }

/** https://docs.anthropic.com/en/api/service-tiers and https://docs.anthropic.com/en/docs/about-claude/pricing */
export const messagesServed: ServedRules = {
  tier: { ...nowhere, usage: ['service_tier'] },
  speed: { ...nowhere, usage: ['speed'], asked: 'speed' },
  region: { ...nowhere, usage: ['inference_geo'], asked: 'inference_geo' },
  words: { global: 'standard', not_available: 'standard' },
  counts: [{ ...count, unit: 'search', usage: ['server_tool_use.web_search_requests'] }],
  cost: [],
}

/**
 * https://ai.google.dev/gemini-api/docs/priority-inference: the tier that served it stands in a header; on Vertex AI in
 * `trafficType`. A search with grounding is paid by the query.
 */
export const generateContentServed: ServedRules = {
  tier: { reply: [], usage: ['serviceTier', 'trafficType'], header: 'x-gemini-service-tier', asked: 'service_tier' },
  speed: nowhere,
  region: nowhere,
  words: { on_demand: 'standard', traffic_type_unspecified: 'standard', on_demand_priority: 'priority', on_demand_flex: 'flex' },
  counts: [{ ...count, unit: 'search', reply: ['candidates.*.groundingMetadata.webSearchQueries.#'] }],
  cost: [],
}
