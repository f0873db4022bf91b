/**
 * The three official clients, as installed beside this package: one call, one stream, and their own classes for 401 and
 * 403, with the request id where the client shows one (checks 26-28, 62). Every client at every base address is in `test/sdk/`.
 */
import Anthropic from '@anthropic-ai/sdk'
import { ApiError, GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import { keys, startGateway } from './conformance/gateway.js'

interface Session {
  call: () => Promise<string | null | undefined>
  stream: () => AsyncIterable<string | null | undefined>
}

type Connect = (origin: string, apiKey: string) => Session

const model = 'model-1'
const messages = [{ role: 'user' as const, content: 'Say hi.' }]

const openai: Connect = (origin, apiKey) => {
  const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey })
  return {
    async call () {
      return (await client.chat.completions.create({ model, messages })).choices[0]?.message.content
    },
    async * stream () {
      for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
        yield chunk.choices[0]?.delta.content
      }
    },
  }
}

const anthropic: Connect = (baseURL, apiKey) => {
  const client = new Anthropic({ baseURL, apiKey, authToken: null })
  return {
    async call () {
      const [block] = (await client.messages.create({ model, max_tokens: 5, messages })).content
      return block?.type === 'text' ? block.text : null
    },
    async * stream () {
      for await (const event of client.messages.stream({ model, max_tokens: 5, messages })) {
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') yield event.delta.text
      }
    },
  }
}

const gemini: Connect = (baseUrl, apiKey) => {
  const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl } })
  return {
    async call () {
      return (await client.models.generateContent({ model, contents: 'Say hi.' })).text
    },
    async * stream () {
      for await (const chunk of await client.models.generateContentStream({ model, contents: 'Say hi.' })) yield chunk.text
    },
  }
}

const clients = [
  {
    name: 'openai',
    connect: openai,
    key: keys.openai,
    unauthorized: OpenAI.AuthenticationError,
    forbidden: OpenAI.PermissionDeniedError,
    requestId: true,
  },
  {
    name: '@anthropic-ai/sdk',
    connect: anthropic,
    key: keys.anthropic,
    unauthorized: Anthropic.AuthenticationError,
    forbidden: Anthropic.PermissionDeniedError,
    requestId: true,
  },
  { name: '@google/genai', connect: gemini, key: keys.gemini, unauthorized: ApiError, forbidden: ApiError, requestId: false },
]

for (const { name, connect, key, unauthorized, forbidden, requestId } of clients) {
  t.test(name, async (t) => {
    const { origin, upstream } = await startGateway(t)
    t.equal(await connect(origin, key).call(), 'Hello from upstream 👋')
    let text = ''
    for await (const piece of connect(origin, key).stream()) text += piece ?? ''
    t.equal(text, 'Hello from upstream 👋')
    const before = await requestsAt(origin)
    const wrong = await connect(origin, 'sk-wrong-4711').call().catch((error: unknown) => error)
    t.ok(wrong instanceof unauthorized)
    t.match(wrong, { status: 401, message: /Incorrect API key provided/, ...(requestId && { requestID: /^[\da-f-]{36}$/ }) })
    const refused = await connect(origin, keys.none).call().catch((error: unknown) => error)
    t.ok(refused instanceof forbidden)
    t.match(refused, { status: 403, message: /This API key may not be used for \w+\. It allows: no protocol here\./ })
    t.equal(await requestsAt(origin) - before, 2, 'neither refusal was tried again')
    t.equal(upstream.seen.length, 2, 'neither refusal was forwarded')
  })
}

async function requestsAt (origin: string): Promise<number> {
  const text = await (await fetch(`${origin}/metrics`)).text()
  return [...text.matchAll(/^llm_gateway_requests_total\{.*\} (\d+)$/gm)].reduce((sum, match) => sum + Number(match[1]), 0)
}
