import { openaiReply, openaiSearches, openaiServed } from '../openai-rules.js'
import { plainCount, type ServedRules } from '../served-rules.js'
import type { UsageRules } from '../usage-rules.js'

/** A call of the search tool that opens a page or searches in it is not charged as a search. */
const otherActions = ['open_page', 'find_in_page', 'find']
/** Searches charged as the provider itself counts them: OpenAI, Perplexity, xAI (https://docs.x.ai/developers/tools/tool-usage-details). */
const searchCounts = ['tool_usage.web_search.num_requests', 'response.tool_usage.web_search.num_requests']
const byTool = 'server_side_tool_usage_details'
/**
 * Containers in which code ran are charged by their memory (https://platform.openai.com/docs/pricing#built-in-tools); at xAI, each run of
 * code is.
 */
const containers = ['output.*.container_id[]', 'output.*.environment.container_id[]']
const memory = ['tools.*.container.memory_limit[]', 'tools.*.environment.memory_limit[]']
const inEvents = (paths: readonly string[]): string[] => [...paths, ...paths.map((path) => `response.${path}`)]

const served: ServedRules = {
  ...openaiServed,
  tier: { ...openaiServed.tier, reply: ['service_tier', 'response.service_tier'] },
  counts: [
    {
      ...plainCount,
      unit: 'search',
      usage: [...openaiSearches, `${byTool}.web_search_calls`, 'tool_calls_details.search_web.invocation'],
      reply: [...searchCounts, 'output.*.type[]', 'response.output.*.type[]'],
      is: 'web_search_call',
      but: { reply: ['output.*.action.type[]', 'response.output.*.action.type[]'], is: otherActions },
    },
    { ...plainCount, unit: 'search', usage: [`${byTool}.x_search_calls`], adds: true },
    {
      ...plainCount,
      unit: 'container',
      usage: [`${byTool}.code_interpreter_calls`],
      reply: inEvents(containers),
      sizes: inEvents(memory),
    },
    {
      ...plainCount,
      unit: 'file_search',
      usage: [`${byTool}.file_search_calls`],
      reply: ['output.*.type[]', 'response.output.*.type[]'],
      is: 'file_search_call',
    },
  ],
}

export const responsesUsage: UsageRules = {
  ...openaiReply,
  usage: ['usage', 'response.usage'],
  served,
  tools: ['output.*.svg_usage[]', 'response.output.*.svg_usage[]'],
  drawnByTools: ['tool_usage.image_gen', 'response.tool_usage.image_gen'],
  model: ['model', 'response.model'],
  id: ['id', 'response.id'],
  finish: ['choices.*.finish_reason', 'status', 'response.status'],
  unfinished: ['queued', 'in_progress'],
  created: ['response.created_at'],
  sequence: ['sequence_number'],
  errors: ['error', 'response.error'],
  failed: ['error', 'response.failed'],
  // A response in the background may be cancelled by another request; its stream then ends with this event.
  last: ['response.completed', 'response.incomplete', 'response.failed', 'response.cancelled'],
  head: { preamble: ['response.created', 'response.in_progress', 'response.queued', 'keepalive', 'ping'], isEmpty: () => false },
}
