import * as newest from 'ai'
import * as old from 'ai-6'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createAnthropic as createAnthropic3 } from 'ai-sdk-anthropic-3'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createGoogleGenerativeAI as createGoogle3 } from 'ai-sdk-google-3'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAI as createOpenAI3 } from 'ai-sdk-openai-3'
import { model, prompt, type Client, type Session } from '../client.js'

interface Provider { baseURL: string, apiKey: string }

// Both majors take their own kind of model object; the suite hands each what its provider package made.
interface Library<Model> {
  generateText: (options: { model: Model, prompt: string, maxRetries: number }) => PromiseLike<{ text: string }>
  streamText: (options: { model: Model, prompt: string, maxRetries: number, abortSignal?: AbortSignal, onError: () => void }) =>
  { fullStream: AsyncIterable<{ type: string, text?: string, error?: unknown }> }
}

function through<Model> (library: Library<Model>, create: (provider: Provider) => Model) {
  return (baseURL: string, apiKey: string): Session => {
    const chosen = create({ baseURL, apiKey })
    return {
      async call () {
        return (await library.generateText({ model: chosen, prompt, maxRetries: 1 })).text
      },
      async * stream (abortSignal) {
        const { fullStream } = library.streamText({ model: chosen, prompt, maxRetries: 1, abortSignal, onError () {} })
        for await (const part of fullStream) {
          if (part.type === 'text-delta') yield part.text ?? ''
          if (part.type === 'error') throw part.error
          if (part.type === 'abort') throw new Error('aborted')
        }
      },
    }
  }
}

const shared = {
  retries: true, classes: { 401: 'AI_APICallError', 403: 'AI_APICallError', 429: 'AI_RetryError', 529: 'AI_RetryError' },
} as const
const openai = { ...shared, setting: '`OPENAI_BASE_URL` or `createOpenAI({ baseURL })`', documented: '/v1' } as const
const anthropic = {
  ...shared, protocol: 'messages', setting: '`ANTHROPIC_BASE_URL` or `createAnthropic({ baseURL })`', documented: '/v1',
} as const
const google = {
  ...shared, protocol: 'generate_content', setting: '`createGoogleGenerativeAI({ baseURL })`', documented: '/v1beta',
} as const

export const ai: readonly Client[] = [
  {
    ...openai,
    name: 'ai 7, @ai-sdk/openai',
    folder: '@ai-sdk/openai',
    protocol: 'responses',
    connect: through(newest, (at) => createOpenAI(at)(model)),
  },
  {
    ...openai,
    name: 'ai 7, @ai-sdk/openai',
    folder: '@ai-sdk/openai',
    protocol: 'chat_completions',
    connect: through(newest, (at) => createOpenAI(at).chat(model)),
  },
  {
    ...openai,
    name: 'ai 6, @ai-sdk/openai',
    folder: 'ai-sdk-openai-3',
    protocol: 'responses',
    connect: through(old, (at) => createOpenAI3(at)(model)),
  },
  {
    ...openai,
    name: 'ai 6, @ai-sdk/openai',
    folder: 'ai-sdk-openai-3',
    protocol: 'chat_completions',
    connect: through(old, (at) => createOpenAI3(at).chat(model)),
  },
  {
    ...anthropic,
    name: 'ai 7, @ai-sdk/anthropic',
    folder: '@ai-sdk/anthropic',
    connect: through(newest, (at) => createAnthropic(at)(model)),
  },
  {
    ...anthropic, name: 'ai 6, @ai-sdk/anthropic', folder: 'ai-sdk-anthropic-3', connect: through(old, (at) => createAnthropic3(at)(model)),
  },
  {
    ...google,
    name: 'ai 7, @ai-sdk/google',
    folder: '@ai-sdk/google',
    connect: through(newest, (at) => createGoogleGenerativeAI(at)(model)),
  },
  { ...google, name: 'ai 6, @ai-sdk/google', folder: 'ai-sdk-google-3', connect: through(old, (at) => createGoogle3(at)(model)) },
]
