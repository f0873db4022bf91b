import { aggregatorModels, defineProtocol, substituteModels, webSearchNames } from '../endpoint.js'
import { openai } from '../family-openai.js'
import { simulateChatCompletions } from './simulate.js'
import { chatText } from './text.js'
import { chatUsage } from './usage.js'

/** https://platform.openai.com/docs/api-reference/chat */
export const chatCompletions = defineProtocol({
  name: 'chat_completions',
  family: openai,
  operation: 'chat',
  text: chatText,
  endpoints: [
    {
      id: 'chat_completions',
      path: 'chat/completions',
      schema: 'chat-completions',
      metered: 'yes',
      streams: 'body',
      modelField: 'model',
      otherModels: aggregatorModels,
      substitutes: substituteModels,
      usage: chatUsage,
      output: {
        max: [['max_completion_tokens'], ['max_tokens']],
        choices: [['n']],
        tools: [{ unit: 'search', names: webSearchNames, most: null, fields: ['web_search_options', 'enable_search'] }],
        // At xAI: https://docs.x.ai/developers/advanced-api-usage/deferred-chat-completions
        goesOn: ['deferred'],
      },
    },
  ],
  example: {
    model: 'gpt-5.4-mini',
    path: () => '/v1/chat/completions',
    body: (model) => ({ model, messages: [{ role: 'user', content: 'Say hello' }] }),
  },
  simulations: simulateChatCompletions,
})
