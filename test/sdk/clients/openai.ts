import Newest from 'openai'
import Old from 'openai-6'
import { model, prompt, type Client, type Session } from '../client.js'

const classes = { 401: 'AuthenticationError', 403: 'PermissionDeniedError', 429: 'RateLimitError', 529: 'InternalServerError' }

// The calls of the suite are the same in both majors; their overloads are not, so that no union of them can be called.
const OldAsNewest = Old as unknown as typeof Newest

function chat (Library: typeof Newest) {
  return (baseURL: string, apiKey: string): Session => {
    const client = new Library({ baseURL, apiKey, maxRetries: 1 })
    const messages = [{ role: 'user' as const, content: prompt }]
    return {
      async call () {
        const reply = await client.chat.completions.create({ model, messages })
        return reply.choices[0]?.message.content ?? ''
      },
      async * stream (signal) {
        const events = await client.chat.completions.create({ model, messages, stream: true }, { signal })
        for await (const event of events) yield event.choices[0]?.delta.content ?? ''
      },
    }
  }
}

function responses (Library: typeof Newest) {
  return (baseURL: string, apiKey: string): Session => {
    const client = new Library({ baseURL, apiKey, maxRetries: 1 })
    return {
      async call () {
        return (await client.responses.create({ model, input: prompt })).output_text
      },
      async * stream (signal) {
        const events = await client.responses.create({ model, input: prompt, stream: true }, { signal })
        for await (const event of events) {
          if (event.type === 'response.output_text.delta') yield event.delta
          if (event.type === 'response.failed') throw new Error(event.response.error?.message)
        }
      },
    }
  }
}

const shared = { setting: '`OPENAI_BASE_URL` or `baseURL`', documented: '/v1', retries: true, classes } as const

export const openai: readonly Client[] = [
  { ...shared, name: 'openai 7', folder: 'openai', protocol: 'chat_completions', connect: chat(Newest) },
  { ...shared, name: 'openai 7', folder: 'openai', protocol: 'responses', connect: responses(Newest) },
  { ...shared, name: 'openai 6', folder: 'openai-6', protocol: 'chat_completions', connect: chat(OldAsNewest) },
  { ...shared, name: 'openai 6', folder: 'openai-6', protocol: 'responses', connect: responses(OldAsNewest) },
]
