import { openaiReply, openaiSearches, openaiServed } from '../openai-rules.js'
import { plainCount, type ServedRules } from '../served-rules.js'
import type { UsageRules } from '../usage-rules.js'

/** Paths in a reply, and the same in events, which have the response as a field. */
const alsoInEvents = (...paths: readonly string[]): string[] => [...paths, ...paths.map((path) => `response.${path}`)]

/** A call of the search tool that opens a page or searches in it is not charged as a search. */
const otherActions = ['open_page', 'find_in_page', 'find']
/**
 * Searches charged as the provider itself counts them: OpenAI, Alibaba, Perplexity, xAI
 * (https://docs.x.ai/developers/tools/tool-usage-details).
 */
const searchCounts = alsoInEvents('tool_usage.web_search.num_requests')
const byTool = 'server_side_tool_usage_details'
/**
 * Containers in which code ran are charged by their memory (https://platform.openai.com/docs/pricing#built-in-tools); at xAI, each run of
 * code is.
 */
const containers = alsoInEvents('output.*.container_id[]', 'output.*.environment.container_id[]')
const memory = alsoInEvents('tools.*.container.memory_limit[]', 'tools.*.environment.memory_limit[]')
const typesOfOutput = alsoInEvents('output.*.type[]')

const served: ServedRules = {
  ...openaiServed,
  tier: { ...openaiServed.tier, reply: alsoInEvents('service_tier') },
  counts: [
    {
      ...plainCount,
      unit: 'search',
      usage: [...openaiSearches, `${byTool}.web_search_calls`, 'tool_calls_details.search_web.invocation', 'x_tools.web_search.count'],
      reply: [...searchCounts, ...typesOfOutput],
      is: 'web_search_call',
      but: { reply: alsoInEvents('output.*.action.type[]'), is: otherActions },
    },
    { ...plainCount, unit: 'search', usage: [`${byTool}.x_search_calls`], adds: true },
    { ...plainCount, unit: 'container', usage: [`${byTool}.code_interpreter_calls`], reply: containers, sizes: memory },
    { ...plainCount, unit: 'file_search', usage: [`${byTool}.file_search_calls`], reply: typesOfOutput, is: 'file_search_call' },
  ],
}

export const responsesUsage: UsageRules = {
  ...openaiReply,
  usage: alsoInEvents('usage'),
  served,
  tools: alsoInEvents('output.*.svg_usage[]'),
  drawnByTools: alsoInEvents('tool_usage.image_gen'),
  model: alsoInEvents('model'),
  id: alsoInEvents('id'),
  finish: ['choices.*.finish_reason', ...alsoInEvents('status')],
  unfinished: ['queued', 'in_progress'],
  created: ['response.created_at'],
  sequence: ['sequence_number'],
  errors: alsoInEvents('error'),
  failed: ['error', 'response.failed'],
  // A response in the background may be cancelled by another request; its stream then ends with this event.
  last: ['response.completed', 'response.incomplete', 'response.failed', 'response.cancelled'],
  head: { preamble: ['response.created', 'response.in_progress', 'response.queued', 'keepalive', 'ping'], isEmpty: () => false },
}
