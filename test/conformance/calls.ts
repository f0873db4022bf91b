/** One plain, valid request for every endpoint of the gateway, as its family's clients send it. */
import { exchange, type Reply } from '../../bin/conformance/wire.js'
import { keys } from './gateway.js'

export type FamilyName = 'openai' | 'anthropic' | 'gemini'

export interface Call {
  readonly id: string
  readonly family: FamilyName
  readonly protocol: string
  readonly method: string
  /** Canonical path: what the upstream must see. */
  readonly path: string
  readonly body: string
}

const hello = [{ role: 'user', content: 'Say hi.' }]
const contents = [{ role: 'user', parts: [{ text: 'Say hi.' }] }]
const model = 'model-1'

function call (family: FamilyName, protocol: string, id: string, at: string, body?: object): Call {
  const [method = '', path = ''] = at.split(' ')
  return { family, protocol, id, method, path, body: body === undefined ? '' : JSON.stringify(body) }
}

export const calls: readonly Call[] = [
  call('openai', 'chat_completions', 'chat_completions', 'POST /v1/chat/completions', { model, messages: hello }),
  call('openai', 'responses', 'responses', 'POST /v1/responses', { model, input: 'Say hi.' }),
  call('openai', 'responses', 'responses.compact', 'POST /v1/responses/compact', { model, input: 'Say hi.' }),
  call('openai', 'responses', 'responses.input_tokens', 'POST /v1/responses/input_tokens', { model, input: 'Say hi.' }),
  call('openai', 'responses', 'responses.cancel', 'POST /v1/responses/resp_1/cancel'),
  call('openai', 'responses', 'responses.input_items', 'GET /v1/responses/resp_1/input_items'),
  call('openai', 'responses', 'responses.retrieve', 'GET /v1/responses/resp_1'),
  call('openai', 'responses', 'responses.delete', 'DELETE /v1/responses/resp_1'),
  call('openai', 'images', 'images', 'POST /v1/images/generations', { model, prompt: 'a dot' }),
  call('openai', 'images', 'images.edits', 'POST /v1/images/edits', { model, prompt: 'a dot', images: [{ image_url: 'data:,' }] }),
  call('openai', 'images', 'images.variations', 'POST /v1/images/variations', { model, image: 'data:,' }),
  call('openai', 'embeddings', 'embeddings', 'POST /v1/embeddings', { model, input: 'hi' }),
  call('openai', 'models', 'models.openai', 'GET /v1/models'),
  call('openai', 'models', 'models.openai.retrieve', 'GET /v1/models/model-1'),
  call('anthropic', 'messages', 'messages', 'POST /v1/messages', { model, max_tokens: 16, messages: hello }),
  call('anthropic', 'messages', 'messages.count_tokens', 'POST /v1/messages/count_tokens', { model, messages: hello }),
  call('anthropic', 'models', 'models.anthropic', 'GET /v1/models'),
  call('anthropic', 'models', 'models.anthropic.retrieve', 'GET /v1/models/model-1'),
  call('gemini', 'generate_content', 'generate_content.generateContent', 'POST /v1beta/models/model-1:generateContent', { contents }),
  call('gemini', 'generate_content', 'generate_content.streamGenerateContent', 'POST /v1beta/models/model-1:streamGenerateContent', { contents }),
  call('gemini', 'generate_content', 'generate_content.countTokens', 'POST /v1beta/models/model-1:countTokens', { contents }),
  call('gemini', 'generate_content', 'generate_content.embedContent', 'POST /v1beta/models/model-1:embedContent', { content: contents[0] }),
  call('gemini', 'generate_content', 'generate_content.batchEmbedContents', 'POST /v1beta/models/model-1:batchEmbedContents', { requests: [{ model: 'models/model-1', content: contents[0] }] }),
  call('gemini', 'generate_content', 'generate_content.tuned.generateContent', 'POST /v1beta/tunedModels/m-1:generateContent', { contents }),
  call('gemini', 'generate_content', 'generate_content.tuned.streamGenerateContent', 'POST /v1beta/tunedModels/m-1:streamGenerateContent', { contents }),
  call('gemini', 'generate_content', 'generate_content.tuned.countTokens', 'POST /v1beta/tunedModels/m-1:countTokens', { contents }),
  call('gemini', 'generate_content', 'generate_content.tuned.embedContent', 'POST /v1beta/tunedModels/m-1:embedContent', { content: contents[0] }),
  call('gemini', 'generate_content', 'generate_content.tuned.batchEmbedContents', 'POST /v1beta/tunedModels/m-1:batchEmbedContents', { requests: [{ model: 'tunedModels/m-1', content: contents[0] }] }),
  call('gemini', 'models', 'models.gemini', 'GET /v1beta/models'),
  call('gemini', 'models', 'models.gemini.retrieve', 'GET /v1beta/models/model-1'),
]

/** The plain call of a protocol. */
export function plain (id: string): Call {
  const found = calls.find((known) => known.id === id)
  if (found === undefined) throw new Error(`no call ${id}`)
  return found
}

export const main = ['chat_completions', 'responses', 'images', 'embeddings', 'messages', 'generate_content.generateContent'].map(plain)

/** The headers by which a client of the family presents `key`. */
export function credentials (family: FamilyName, key: string): Record<string, string> {
  if (family === 'openai') return { authorization: `Bearer ${key}` }
  if (family === 'anthropic') return { 'x-api-key': key, 'anthropic-version': '2023-06-01' }
  return { 'x-goog-api-key': key }
}

export interface Change {
  readonly method?: string
  /** Raw request target. */
  readonly path?: string
  readonly body?: string | Buffer
  /** Added or replaced; null removes. */
  readonly headers?: Readonly<Record<string, string | string[] | null>>
  readonly key?: string
  readonly onBytes?: (sofar: Buffer) => unknown
}

/** Sends `call` to the gateway, changed as told, and reads the whole reply. */
export async function send (origin: string, { method, path, family, body }: Call, change: Change = {}): Promise<Reply> {
  const bytes = Buffer.from(change.body ?? body)
  const given = { ...(bytes.length > 0 && { 'content-type': 'application/json' }), ...credentials(family, change.key ?? keys[family]), ...change.headers }
  const headers: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(given)) if (value !== null) headers[name] = value
  return await exchange(origin, {
    method: change.method ?? method,
    path: change.path ?? path,
    headers,
    body: bytes,
    ...(change.onBytes && { onBytes: change.onBytes }),
  })
}
