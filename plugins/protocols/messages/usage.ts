import { nowhere, plainCount, statedCosts, type ServedRules } from '../served-rules.js'
import { noCounts, plainReply, type UsageRules } from '../usage-rules.js'

/** https://docs.anthropic.com/en/api/service-tiers and https://docs.anthropic.com/en/docs/about-claude/pricing */
const served: ServedRules = {
  tier: { ...nowhere, usage: [['service_tier']] },
  speed: { ...nowhere, usage: [['speed']], asked: ['speed'] },
  region: { ...nowhere, usage: [['inference_geo']], asked: ['inference_geo'] },
  words: new Map([['global', 'standard'], ['not_available', 'standard']]),
  counts: [{ ...plainCount, unit: 'search', usage: ['server_tool_use.web_search_requests'] }],
  cost: statedCosts,
}

export const messagesUsage: UsageRules = {
  ...plainReply,
  usage: ['message.usage', 'usage'],
  model: ['message.model', 'model'],
  id: ['message.id', 'id'],
  finish: ['message.stop_reason', 'delta.stop_reason', 'stop_reason'],
  sign: 'kens"',
  last: ['message_stop'],
  served,
  ending: { types: [], reasons: [], arrays: false },
  head: { preamble: ['message_start', 'ping'], isEmpty: () => false },
  counts: {
    ...noCounts,
    input: ['input_tokens'],
    cacheRead: ['cache_read_input_tokens'],
    cacheWrite: ['cache_creation_input_tokens'],
    cacheWrite5m: ['cache_creation.ephemeral_5m_input_tokens'],
    cacheWrite1h: ['cache_creation.ephemeral_1h_input_tokens'],
    output: ['output_tokens'],
    reasoning: ['output_tokens_details.thinking_tokens'],
    inputHoldsCache: false,
    outputHoldsReasoning: true,
    // The top level leaves these out; a fallback is included in it.
    added: { list: 'iterations', type: 'compaction', tools: 'advisor_message' },
  },
}
