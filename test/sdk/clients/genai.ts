import { GoogleGenAI as Newest } from '@google/genai'
import { GoogleGenAI as Old } from 'genai-2'
import { model, prompt, type Client, type Session } from '../client.js'

function generate (Library: typeof Newest | typeof Old) {
  return (baseUrl: string, apiKey: string): Session => {
    const client = new Library({ apiKey, httpOptions: { baseUrl } })
    return {
      async call () {
        return (await client.models.generateContent({ model, contents: prompt })).text ?? ''
      },
      async * stream (abortSignal) {
        const chunks = await client.models.generateContentStream({ model, contents: prompt, config: { abortSignal } })
        for await (const chunk of chunks) yield chunk.text ?? ''
      },
    }
  }
}

const shared = {
  protocol: 'generate_content',
  setting: '`GOOGLE_GEMINI_BASE_URL` or `httpOptions.baseUrl`',
  documented: '',
  retries: false,
  classes: { 401: 'ApiError', 403: 'ApiError', 429: 'ApiError', 529: 'ApiError' },
} as const

export const genai: readonly Client[] = [
  { ...shared, name: '@google/genai 3', folder: '@google/genai', connect: generate(Newest) },
  { ...shared, name: '@google/genai 2', folder: 'genai-2', connect: generate(Old) },
]
