import Newest from '@anthropic-ai/sdk'
import Old from 'anthropic-0'
import { model, prompt, type Client, type Session } from '../client.js'

// The calls of the suite are the same in both majors; their overloads are not, so that no union of them can be called.
const OldAsNewest = Old as unknown as typeof Newest

function messages (Library: typeof Newest) {
  return (baseURL: string, apiKey: string): Session => {
    const client = new Library({ baseURL, apiKey, authToken: null, maxRetries: 1 })
    const body = { model, max_tokens: 64, messages: [{ role: 'user' as const, content: prompt }] }
    return {
      async call () {
        const [block] = (await client.messages.create(body)).content
        return block?.type === 'text' ? block.text : ''
      },
      async * stream (signal) {
        const events = await client.messages.create({ ...body, stream: true }, { signal })
        for await (const event of events) {
          if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') yield event.delta.text
        }
      },
    }
  }
}

const shared = { protocol: 'messages', setting: '`ANTHROPIC_BASE_URL` or `baseURL`', documented: '', retries: true } as const
const classes = { 401: 'AuthenticationError', 403: 'PermissionDeniedError', 429: 'RateLimitError' }

export const anthropic: readonly Client[] = [
  {
    ...shared,
    name: '@anthropic-ai/sdk 1',
    folder: '@anthropic-ai/sdk',
    classes: { ...classes, 529: 'OverloadedError' },
    connect: messages(Newest),
  },
  {
    ...shared,
    name: '@anthropic-ai/sdk 0',
    folder: 'anthropic-0',
    classes: { ...classes, 529: 'InternalServerError' },
    connect: messages(OldAsNewest),
  },
]
