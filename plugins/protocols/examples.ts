/** One small request of each protocol, as its users write it: for the commands that the gateway prints, and for docs. */
import { anthropic } from './family-anthropic.js'
import { gemini } from './family-gemini.js'
import { openai } from './family-openai.js'
import type { Family, ProtocolName } from './types.js'

export interface ProtocolExample {
  readonly family: Family
  readonly model: string
  readonly path: (model: string) => string
  readonly body: (model: string) => Record<string, unknown>
  /** Headers besides the credential and the content type. */
  readonly headers: Readonly<Record<string, string>>
}

const question = 'Say hello'
const noHeaders = {}

export const examples: Readonly<Record<ProtocolName, ProtocolExample>> = {
  chat_completions: {
    family: openai,
    model: 'gpt-5-mini',
    path: () => '/v1/chat/completions',
    body: (model) => ({ model, messages: [{ role: 'user', content: question }] }),
    headers: noHeaders,
  },
  responses: {
    family: openai,
    model: 'gpt-5-mini',
    path: () => '/v1/responses',
    body: (model) => ({ model, input: question }),
    headers: noHeaders,
  },
  images: {
    family: openai,
    model: 'gpt-image-1',
    path: () => '/v1/images/generations',
    body: (model) => ({ model, prompt: 'A lighthouse at dawn', size: '1024x1024', quality: 'low' }),
    headers: noHeaders,
  },
  embeddings: {
    family: openai,
    model: 'text-embedding-3-small',
    path: () => '/v1/embeddings',
    body: (model) => ({ model, input: question }),
    headers: noHeaders,
  },
  messages: {
    family: anthropic,
    model: 'claude-sonnet-4-5',
    path: () => '/v1/messages',
    body: (model) => ({ model, max_tokens: 256, messages: [{ role: 'user', content: question }] }),
    headers: { 'anthropic-version': '2023-06-01' },
  },
  generate_content: {
    family: gemini,
    model: 'gemini-2.5-flash',
    path: (model) => `/v1beta/models/${model}:generateContent`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: question }] }] }),
    headers: noHeaders,
  },
}
