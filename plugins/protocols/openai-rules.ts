/** What the replies of one family's protocols share: third parties mix the field names of all of them. */
import { nowhere, plainCount, statedCosts, vertexTier, type ServedRules } from './served-rules.js'
import type { TextPlace } from './text-rules.js'
import { noCounts, plainReply, type UsageCounts } from './usage-rules.js'

/** Field names of chats and of responses alike. What is kept for 12 hours has a price of its own, so it counts as the longer lifetime. */
export const openaiCounts: UsageCounts = {
  ...noCounts,
  input: ['prompt_tokens', 'input_tokens'],
  cacheRead: [
    'prompt_tokens_details.cached_tokens', 'input_tokens_details.cached_tokens', 'prompt_cache_hit_tokens', 'cached_tokens',
    'input_tokens_details.cache_read_input_tokens', 'cache_read_input_tokens',
  ],
  cacheWrite: [
    'prompt_tokens_details.cache_write_tokens', 'input_tokens_details.cache_write_tokens',
    'prompt_tokens_details.cache_creation_input_tokens', 'prompt_tokens_details.cache_creation_tokens',
    'input_tokens_details.cache_creation_input_tokens', 'prompt_tokens_details.caching_tokens', 'cache_creation_input_tokens',
  ],
  cacheWrite5m: ['prompt_tokens_details.caching_token_details.caching_5m_tokens'],
  cacheWrite1h: [
    'input_tokens_details.cache_write_tokens_details.ttl_12h_tokens', 'prompt_tokens_details.caching_token_details.caching_1h_tokens',
  ],
  output: ['completion_tokens', 'output_tokens'],
  reasoning: ['completion_tokens_details.reasoning_tokens', 'output_tokens_details.reasoning_tokens', 'reasoning_tokens'],
  total: ['total_tokens'],
  // Perplexity's deep research: https://docs.perplexity.ai/getting-started/models/models/sonar-deep-research
  outsideTotal: ['citation_tokens'],
  inputHoldsCache: true,
  outputHoldsReasoning: true,
  inputKinds: ['prompt_tokens_details', 'input_tokens_details'],
  // Of pictures that a tool of a response drew; LiteLLM's own.
  cachedKinds: ['cached_tokens_details', 'prompt_tokens_details.cached_tokens_details', 'input_tokens_details.cached_tokens_details'],
  outputKinds: ['completion_tokens_details', 'output_tokens_details'],
}

/** Searches that the usage itself counts; the first is Alibaba's (https://www.alibabacloud.com/help/en/model-studio/web-search). */
export const openaiSearches: readonly string[] = [
  'plugins.search.count', 'server_tool_use.web_search_requests', 'server_tool_use_details.web_search_requests',
  'num_search_queries',
]

/**
 * https://platform.openai.com/docs/api-reference/chat/object (`service_tier`): the tier that served the request, which may differ from the
 * requested one; `fast` is answered as `priority`. Others of the family state their own cost inside the usage, and their searches
 * (https://openrouter.ai/docs/client-sdks/python/components/servertoolusedetails).
 */
export const openaiServed: ServedRules = {
  // Vertex AI with this protocol.
  tier: {
    ...nowhere,
    reply: ['service_tier'],
    usage: [['extra_properties', 'google', 'traffic_type']],
    asked: ['service_tier'],
    askedBy: vertexTier,
  },
  speed: nowhere,
  region: nowhere,
  words: new Map([
    ['default', 'standard'], ['auto', 'standard'], ['on_demand', 'standard'],
    ['fast', 'priority'], ['on_demand_priority', 'priority'], ['on_demand_flex', 'flex'],
  ]),
  counts: [
    { ...plainCount, unit: 'second', usage: ['seconds', 'prompt_audio_seconds'] },
    { ...plainCount, unit: 'search', usage: openaiSearches },
  ],
  cost: statedCosts,
}

export const openaiReply = {
  ...plainReply,
  model: ['model'],
  id: ['id'],
  finish: ['choices.*.finish_reason'],
  created: ['created'],
  sign: 'kens"',
  ending: { types: [], reasons: ['choices.*.finish_reason'], arrays: false },
  counts: openaiCounts,
  served: openaiServed,
} as const

/** Where chunks and replies of chats have the model's text. */
export const choiceTexts: readonly TextPlace[] = [
  { path: ['choices', '*', 'message', 'content'], type: null },
  { path: ['choices', '*', 'delta', 'content'], type: null },
]
