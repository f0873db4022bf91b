import { aggregatorModels, defineProtocol, substituteModels, webSearchNames } from '../endpoint.js'
import { openai } from '../family-openai.js'
import { simulateResponses } from './simulate.js'
import { failedResponse } from './stream-error.js'
import { responsesText } from './text.js'
import { responsesUsage } from './usage.js'

/** Includes models of tools in a namespace, and image models: https://platform.openai.com/docs/api-reference/responses/create */
const otherModels = [...aggregatorModels, 'tools.*.svg.model', 'tools.*.tools.*.model', 'tools.*.tools.*.svg.model']
/** Models of tools that come with an item: `additional_tools`, and results of a search for tools. */
const modelsWithin = {
  places: ['input.*.tools'],
  models: [
    'input.*.tools.*.model', 'input.*.tools.*.svg.model', 'input.*.tools.*.tools.*.model', 'input.*.tools.*.tools.*.svg.model',
  ],
}

const output = {
  max: [['max_output_tokens']],
  choices: [],
  toolsWithin: [['input', '*', 'tools']],
  tools: [
    { unit: 'search', names: [...webSearchNames, 'x_search'], most: 'max_tool_calls' },
    { unit: 'file_search', names: ['file_search'], most: 'max_tool_calls' },
    {
      unit: 'container',
      names: ['code_interpreter', 'shell'],
      most: null,
      sizes: [['container', 'memory_limit'], ['environment', 'memory_limit']],
    },
  ],
} as const

/** What is asked of a model. */
const created = {
  metered: 'yes', modelField: 'model', otherModels, modelsWithin, substitutes: substituteModels, usage: responsesUsage,
} as const

/**
 * https://platform.openai.com/docs/api-reference/responses
 * A retrieved response repeats the usage of its creation, so only creation and compaction are metered. One in the background is the first
 * to tell it.
 */
export const responses = defineProtocol({
  name: 'responses',
  family: openai,
  operation: 'chat',
  text: responsesText,
  boundIdField: 'previous_response_id',
  streamError: failedResponse,
  endpoints: [
    {
      id: 'responses',
      path: 'responses',
      schema: 'responses',
      streams: 'body',
      ...created,
      output: { ...output, goesOn: ['background'] },
    },
    { id: 'responses.compact', path: 'responses/compact', schema: 'responses.compact', ...created, output },
    { id: 'responses.input_tokens', path: 'responses/input_tokens', schema: 'responses.input_tokens', modelField: 'model' },
    { id: 'responses.cancel', path: 'responses/:id/cancel', body: 'none', replays: responsesUsage },
    { id: 'responses.input_items', path: 'responses/:id/input_items', method: 'GET', body: 'none' },
    { id: 'responses.retrieve', path: 'responses/:id', method: 'GET', body: 'none', replays: responsesUsage },
    { id: 'responses.delete', path: 'responses/:id', method: 'DELETE', body: 'none' },
  ],
  example: {
    model: 'gpt-5.4-mini',
    path: () => '/v1/responses',
    body: (model) => ({ model, input: 'Say hello' }),
  },
  simulations: simulateResponses,
})
