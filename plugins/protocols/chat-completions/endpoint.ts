import { defineEndpoints } from '../endpoint.js'
import { openai } from '../family-openai.js'
import { chatUsage } from '../usage-rules.js'

/** https://platform.openai.com/docs/api-reference/chat */
export const chatCompletions = defineEndpoints(
  { protocol: 'chat_completions', family: openai, operation: 'chat', allowedBy: ['chat_completions'] },
  [
    {
      id: 'chat_completions',
      path: 'chat/completions',
      schema: 'chat-completions',
      metered: 'yes',
      streams: 'body',
      modelField: 'model',
      // As aggregators take them.
      otherModels: ['models', 'fallbacks', 'tools.*.model'],
      usage: chatUsage,
      output: { max: [['max_completion_tokens'], ['max_tokens']], choices: [['n']] },
    },
  ])
