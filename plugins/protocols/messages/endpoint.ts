import { defineEndpoints } from '../endpoint.js'
import { anthropic } from '../family-anthropic.js'
import { messagesUsage } from '../usage-rules.js'

/** https://docs.anthropic.com/en/api/messages */
export const messages = defineEndpoints(
  { protocol: 'messages', family: anthropic, operation: 'chat', allowedBy: ['messages'] },
  [
    {
      id: 'messages',
      path: 'messages',
      schema: 'messages',
      metered: 'yes',
      streams: 'body',
      modelField: 'model',
      otherModels: ['models', 'fallbacks', 'tools.*.model'],
      usage: messagesUsage,
      output: { max: [['max_tokens']], choices: [] },
    },
    { id: 'messages.count_tokens', path: 'messages/count_tokens', schema: 'messages.count_tokens', modelField: 'model' },
  ])
