import { ChatAnthropic } from '@langchain/anthropic'
import { ChatGoogleGenerativeAI } from '@langchain/google-genai'
import { ChatOpenAI } from '@langchain/openai'
import { model, prompt, type Client, type Session } from '../client.js'

interface Chat {
  invoke: (input: string) => Promise<{ text: string }>
  stream: (input: string, options: { signal?: AbortSignal }) => Promise<AsyncIterable<{ text: string }>>
}

function session (chat: Chat): Session {
  return {
    async call () {
      return (await chat.invoke(prompt)).text
    },
    async * stream (signal) {
      for await (const chunk of await chat.stream(prompt, { signal })) yield chunk.text
    },
  }
}

// Their own retries wait for seconds whatever the reply says: switched off, a failure shows at once.
const shared = { retries: false, classes: {} } as const

export const langchain: readonly Client[] = [
  {
    ...shared,
    name: '@langchain/openai 1',
    folder: '@langchain/openai',
    protocol: 'chat_completions',
    setting: '`OPENAI_BASE_URL` or `configuration.baseURL`',
    documented: '/v1',
    connect: (baseURL, apiKey) => session(new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL } })),
  },
  {
    ...shared,
    name: '@langchain/anthropic 1',
    folder: '@langchain/anthropic',
    protocol: 'messages',
    setting: '`anthropicApiUrl`',
    documented: '',
    connect: (anthropicApiUrl, apiKey) => session(new ChatAnthropic({ model, apiKey, maxRetries: 0, anthropicApiUrl })),
  },
  {
    ...shared,
    name: '@langchain/google-genai 2',
    folder: '@langchain/google-genai',
    protocol: 'generate_content',
    setting: '`baseUrl`',
    documented: '',
    deaf: {
      'keep-alive comments': '@google/generative-ai fails on a comment in a stream',
      'error in the stream': '@google/generative-ai drops error events of a stream',
      'cut stream': '@google/generative-ai leaves an unhandled rejection behind',
      abort: '@google/generative-ai leaves an unhandled rejection behind',
    },
    connect: (baseUrl, apiKey) => session(new ChatGoogleGenerativeAI({ model, apiKey, maxRetries: 0, baseUrl })),
  },
]
