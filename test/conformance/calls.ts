/** One plain, valid request for every endpoint of the gateway, as its family's clients send it. */
import { readFileSync } from 'node:fs'
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

const fixtures: ReadonlyArray<Omit<Call, 'body'> & { readonly body?: object }> = JSON.parse(readFileSync(
  new URL('../fixtures/calls.json', import.meta.url), 'utf8'
))

export const calls: readonly Call[] = fixtures.map(({ body, ...call }) => ({
  ...call, body: body === undefined ? '' : JSON.stringify(body),
}))

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
  const given = {
    ...(bytes.length > 0 && { 'content-type': 'application/json' }), ...credentials(family, change.key ?? keys[family]), ...change.headers,
  }
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
