import type { Change, Kind, Subject } from './check.js'
import type { FarSide } from './far-side.js'
import type { FamilyName, Options } from './options.js'
import { exchange, type Reply } from './wire.js'

interface Plain {
  readonly family: FamilyName
  readonly path: (model: string) => string
  readonly body: (model: string) => Record<string, unknown>
}

const hello = [{ role: 'user', content: 'Say hi.' }]

const plain: Readonly<Record<Kind, Plain>> = {
  chat: { family: 'openai', path: () => '/v1/chat/completions', body: (model) => ({ model, messages: hello }) },
  responses: { family: 'openai', path: () => '/v1/responses', body: (model) => ({ model, input: 'Say hi.' }) },
  embeddings: { family: 'openai', path: () => '/v1/embeddings', body: (model) => ({ model, input: 'hi' }) },
  images: { family: 'openai', path: () => '/v1/images/generations', body: (model) => ({ model, prompt: 'a dot' }) },
  messages: { family: 'anthropic', path: () => '/v1/messages', body: (model) => ({ model, max_tokens: 16, messages: hello }) },
  gemini: {
    family: 'gemini',
    path: (model) => `/v1beta/models/${model}:generateContent`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: 'Say hi.' }] }] }),
  },
}

export const familyOf = (kind: Kind): FamilyName => plain[kind].family

/** A kind of each family. */
export const kindOfEach = ['chat', 'messages', 'gemini'] as const

/** The headers in which a client of the family sends `key`. */
const credentials: Readonly<Record<FamilyName, (key: string) => Record<string, string>>> = {
  openai: (key) => ({ authorization: `Bearer ${key}` }),
  anthropic: (key) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
  gemini: (key) => ({ 'x-goog-api-key': key }),
}

/** `limit` aborts whatever the checks still wait for. */
export function createSubject (options: Options, far: FarSide, limit: AbortSignal): Subject {
  async function ask (kind: Kind, change: Change = {}): Promise<Reply> {
    const { family, path, body } = plain[kind]
    const method = change.method ?? 'POST'
    const model = options.models[family]
    const given = method === 'POST' ? change.body ?? JSON.stringify({ ...body(model), ...change.fields }) : ''
    const headers = { 'content-type': 'application/json', ...credentials[family](options.keys[family]), ...change.headers }
    return await exchange(options.baseUrl, {
      method,
      path: change.path ?? path(model),
      headers: present(headers),
      body: Buffer.from(given),
      signal: change.signal ?? limit,
      ...(change.onBytes && { onBytes: change.onBytes }),
    })
  }
  return { options, far, ask }
}

function present (headers: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) kept[name] = value
  return kept
}
