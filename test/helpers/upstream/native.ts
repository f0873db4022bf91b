/**
 * Which fixture of `test/fixtures/replies/` answers a request, as the providers route it. Only canonical paths are
 * known here: a gateway that forwards a path which no provider serves gets a 404, as it would in life.
 */
import { readFileSync } from 'node:fs'
import type { TokenUsage } from '../../../plugins/core/types.js'

/** What the choice of a reply depends on. */
export interface Asked {
  readonly method: string
  /** Path without the query. */
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The parsed JSON body, an empty object where there is none. */
  readonly json: Readonly<Record<string, unknown>>
}

interface Route {
  readonly method: string
  readonly path: RegExp
  readonly fixture: (asked: Asked) => string
}

export interface ReportedUsage {
  readonly protocol: string
  readonly leaves: TokenUsage
}

const folder = new URL('../../fixtures/replies/', import.meta.url)

const calls: ReadonlyArray<{ readonly id: string, readonly method: string, readonly path: string }> = JSON.parse(readFileSync(
  new URL('../calls.json', folder), 'utf8'
))

/** The bytes of a reply fixture, such as `messages.sse`. */
export function replyFixture (name: string): Buffer {
  return readFileSync(new URL(name, folder))
}

/** Exact usage of each fixture that reports any: file name to protocol and disjoint leaves. */
export const usageOf: Readonly<Record<string, ReportedUsage>> = JSON.parse(replyFixture('usage.json').toString())

const streamed = (name: string) => ({ json }: Asked): string => `${name}.${json.stream === true ? 'sse' : 'json'}`
const always = (name: string) => (): string => name

function chat ({ json }: Asked): string {
  if (json.stream !== true) return 'chat_completions.json'
  const options = json.stream_options
  const asked = typeof options === 'object' && options !== null && 'include_usage' in options && options.include_usage === true
  return asked ? 'chat_completions.include_usage.sse' : 'chat_completions.sse'
}

function edits (asked: Asked): string {
  const form = /form-data/.test(String(asked.headers['content-type']))
  return form ? 'images.edits.json' : streamed('images.edits')(asked)
}

const family = ({ headers, path }: Asked): string => {
  if (path.startsWith('/v1beta') || headers['x-goog-api-key'] !== undefined) return 'gemini'
  return headers['anthropic-version'] === undefined ? 'openai' : 'anthropic'
}

const model = '/v1(beta)?/(tunedModels|models)/.+'

const routes: readonly Route[] = [
  { method: 'POST', path: /^\/v1\/chat\/completions$/, fixture: chat },
  { method: 'POST', path: /^\/v1\/responses$/, fixture: streamed('responses') },
  { method: 'POST', path: /^\/v1\/responses\/[^/]+\/cancel$/, fixture: always('responses.cancel.json') },
  { method: 'GET', path: /^\/v1\/responses\/[^/]+\/input_items$/, fixture: always('responses.input_items.json') },
  { method: 'GET', path: /^\/v1\/responses\/[^/]+$/, fixture: always('responses.retrieve.json') },
  { method: 'DELETE', path: /^\/v1\/responses\/[^/]+$/, fixture: always('responses.delete.json') },
  { method: 'POST', path: /^\/v1\/images\/generations$/, fixture: streamed('images') },
  { method: 'POST', path: /^\/v1\/images\/edits$/, fixture: edits },
  {
    method: 'POST',
    path: /^\/v1\/embeddings$/,
    fixture: ({ json }) => json.encoding_format === 'base64' ? 'embeddings.base64.json' : 'embeddings.json',
  },
  { method: 'POST', path: /^\/v1\/messages$/, fixture: streamed('messages') },
  { method: 'POST', path: new RegExp(`^${model}:generateContent$`), fixture: always('generate_content.json') },
  {
    method: 'POST',
    path: new RegExp(`^${model}:streamGenerateContent$`),
    fixture: ({ query }) => /(?:^|&)alt=sse(?:&|$)/.test(query) ? 'generate_content.stream.sse' : 'generate_content.stream.json',
  },
  { method: 'POST', path: new RegExp(`^${model}:countTokens$`), fixture: always('generate_content.count_tokens.json') },
  { method: 'POST', path: new RegExp(`^${model}:embedContent$`), fixture: always('generate_content.embed.json') },
  { method: 'POST', path: new RegExp(`^${model}:batchEmbedContents$`), fixture: always('generate_content.batch_embed.json') },
  { method: 'GET', path: /^\/v1(beta)?\/models$/, fixture: (asked) => `models.${family(asked)}.json` },
  { method: 'GET', path: /^\/v1(beta)?\/models\/.+$/, fixture: (asked) => `models.${family(asked)}.retrieve.json` },
]

/** Where nothing depends on the request, the plain call of an endpoint has the fixture of its id. */
function plainFixture (asked: Asked): string | null {
  const call = calls.find(({ method, path }) => method === asked.method && path === asked.path)
  return call === undefined ? null : `${call.id}.json`
}

/** Name of the fixture that a provider would answer with; null where no provider serves such a request. */
export function nativeFixture (asked: Asked): string | null {
  const route = routes.find(({ method, path }) => method === asked.method && path.test(asked.path))
  return route === undefined ? plainFixture(asked) : route.fixture(asked)
}
