import { aggregatorModels, defineProtocol, substituteModels, webSearchNames } from '../endpoint.js'
import { anthropic } from '../family-anthropic.js'
import { simulateMessages } from './simulate.js'
import { messagesText } from './text.js'
import { messagesUsage } from './usage.js'

/** Models of tools that a block of the conversation adds. */
const modelsWithin = {
  places: ['messages.*.content.*.tool', 'messages.*.content.*.tool_changes'],
  models: ['messages.*.content.*.tool.definition.model', 'messages.*.content.*.tool_changes.*.tool.definition.model'],
}

/** https://docs.anthropic.com/en/api/messages */
export const messages = defineProtocol({
  name: 'messages',
  family: anthropic,
  operation: 'chat',
  text: messagesText,
  endpoints: [
    {
      id: 'messages',
      path: 'messages',
      schema: 'messages',
      metered: 'yes',
      streams: 'body',
      // 29 to 45 in recorded streams.
      streamBytesPerToken: 40,
      modelField: 'model',
      otherModels: aggregatorModels,
      modelsWithin,
      // https://platform.claude.com/docs/en/build-with-claude/message-threads
      heldConversation: { id: ['thread', 'previous_message_id'], sign: ['thread', 'type'] },
      // An advisor's model is charged beside the first: it is held for, and needs a price, as a substitute.
      substitutes: [...substituteModels, 'tools.*.model', ...modelsWithin.models],
      usage: messagesUsage,
      output: {
        max: [['max_tokens']],
        choices: [],
        tools: [{ unit: 'search', names: webSearchNames, most: 'max_uses' }],
        toolsWithin: [['tool'], ['tool_changes', '*', 'tool']].map((path) => ['messages', '*', 'content', '*', ...path, 'definition']),
      },
    },
    { id: 'messages.count_tokens', path: 'messages/count_tokens', schema: 'messages.count_tokens', modelField: 'model' },
  ],
  example: {
    model: 'claude-sonnet-5',
    path: () => '/v1/messages',
    body: (model) => ({ model, max_tokens: 256, messages: [{ role: 'user', content: 'Say hello' }] }),
  },
  simulations: simulateMessages,
})
