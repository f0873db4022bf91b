/** The other endpoints that official clients call: each reaches the provider, and its reply is read. */
import t from 'tap'
import Anthropic from '@anthropic-ai/sdk'
import AnthropicOld from 'anthropic-0'
import { GoogleGenAI } from '@google/genai'
import { GoogleGenAI as GoogleGenAIOld } from 'genai-2'
import OpenAI, { toFile } from 'openai'
import OpenAIOld from 'openai-6'
import { model } from './client.js'
import { key, startGateway } from './gateway.js'

type Calls = Readonly<Record<string, readonly [request: string, call: () => Promise<unknown>]>>

function openaiCalls (client: OpenAI): Calls {
  const file = async (): Promise<File> => await toFile(Buffer.from([137, 80, 78, 71, 13, 10, 0, 255]), 'a.png', { type: 'image/png' })
  return {
    'images.generate': [
      'POST /v1/images/generations', async () => (await client.images.generate({ model, prompt: 'a dot' })).data?.[0]?.b64_json,
    ],
    'images.edit': [
      'POST /v1/images/edits', async () => (await client.images.edit({ model, prompt: 'a dot', image: await file() })).data?.[0]?.b64_json,
    ],
    'images.createVariation': [
      'POST /v1/images/variations', async () => (await client.images.createVariation({ model, image: await file() })).data?.[0]?.b64_json,
    ],
    'embeddings.create': [
      'POST /v1/embeddings', async () => (await client.embeddings.create({ model, input: ['a'] })).data[0]?.embedding[0],
    ],
    'models.list': ['GET /v1/models', async () => (await client.models.list()).data[0]?.id],
    'models.retrieve': ['GET /v1/models/vendor%2Fm', async () => (await client.models.retrieve('vendor/m')).id],
    'responses.retrieve': ['GET /v1/responses/resp_1', async () => (await client.responses.retrieve('resp_1')).output_text],
    'responses.cancel': ['POST /v1/responses/resp_1/cancel', async () => (await client.responses.cancel('resp_1')).status],
    'responses.delete': ['DELETE /v1/responses/resp_1', async () => { await client.responses.delete('resp_1'); return 'deleted' }],
    'responses.inputItems.list': [
      'GET /v1/responses/resp_1/input_items', async () => (await client.responses.inputItems.list('resp_1')).data[0]?.id,
    ],
    'responses.inputTokens.count': [
      'POST /v1/responses/input_tokens', async () => (await client.responses.inputTokens.count({ model, input: 'a' })).input_tokens,
    ],
    'responses.compact': ['POST /v1/responses/compact', async () => (await client.responses.compact({ model, input: 'a' })).output.length],
  }
}

function anthropicCalls (client: Anthropic, query: string): Calls {
  const messages = [{ role: 'user' as const, content: 'a' }]
  return {
    'messages.countTokens': [
      'POST /v1/messages/count_tokens', async () => (await client.messages.countTokens({ model, messages })).input_tokens,
    ],
    'models.list': ['GET /v1/models', async () => (await client.models.list()).data[0]?.id],
    'models.retrieve': ['GET /v1/models/model-1', async () => (await client.models.retrieve(model)).id],
    'beta.messages.create': [
      `POST /v1/messages${query}`,
      async () => (await client.beta.messages.create({ model, max_tokens: 5, messages, betas: ['context-1m-2025-08-07'] })).content.length,
    ],
    'messages.stream': ['POST /v1/messages', async () => await client.messages.stream({ model, max_tokens: 5, messages }).finalText()],
  }
}

function genaiCalls (client: GoogleGenAI, version: string): Calls {
  return {
    'models.countTokens': [
      `POST /${version}/models/${model}:countTokens`, async () => (await client.models.countTokens({ model, contents: 'a' })).totalTokens,
    ],
    'models.embedContent': [
      `POST /${version}/models/${model}:batchEmbedContents`,
      async () => (await client.models.embedContent({ model, contents: 'a' })).embeddings?.[0]?.values?.[0],
    ],
    'models.list': [`GET /${version}/models?pageSize=5`, async () => (await client.models.list({ config: { pageSize: 5 } })).page[0]?.name],
    'models.get': [`GET /${version}/models/${model}`, async () => (await client.models.get({ model })).name],
    'a model of a vendor': [
      `POST /${version}/models/vendor/m:free@1:generateContent`,
      async () => (await client.models.generateContent({ model: 'vendor/m:free@1', contents: 'a' })).text,
    ],
    'a tuned model': [`POST /${version}/tunedModels/m-1:generateContent`, async () =>
      (await client.models.generateContent({ model: 'tunedModels/m-1', contents: 'a', config: { systemInstruction: 'short' } })).text],
  }
}

t.test('sibling endpoints', async (t) => {
  const { origin, upstream } = await startGateway(t)
  const clients: Readonly<Record<string, Calls>> = {
    'openai 7': openaiCalls(new OpenAI({ baseURL: `${origin}/v1`, apiKey: key, maxRetries: 0 })),
    'openai 6': openaiCalls(new OpenAIOld({ baseURL: `${origin}/v1`, apiKey: key, maxRetries: 0 }) as unknown as OpenAI),
    '@anthropic-ai/sdk 1': anthropicCalls(new Anthropic({ baseURL: origin, apiKey: key, maxRetries: 0 }), ''),
    '@anthropic-ai/sdk 0': anthropicCalls(
      new AnthropicOld({ baseURL: origin, apiKey: key, maxRetries: 0 }) as unknown as Anthropic, '?beta=true'
    ),
    '@google/genai 3': genaiCalls(new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: origin } }), 'v1beta'),
    '@google/genai 2': genaiCalls(
      new GoogleGenAIOld({ apiKey: key, httpOptions: { baseUrl: origin } }) as unknown as GoogleGenAI, 'v1beta'
    ),
  }
  for (const [name, calls] of Object.entries(clients)) {
    t.test(name, async (t) => {
      for (const [method, [expected, call]] of Object.entries(calls)) {
        const value = await call().catch((error: unknown) => error)
        t.ok(['string', 'number'].includes(typeof value), `${method}: ${String(value)}`)
        const seen = upstream.seen.at(-1)
        t.equal(`${seen?.method} ${seen?.url}`, expected)
        if (method.startsWith('beta')) t.equal(seen?.headers['anthropic-beta'], 'context-1m-2025-08-07')
      }
    })
  }
})
