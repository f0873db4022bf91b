/**
 * Many requests of two groups on one connection, with both keys in each, over pools whose members fail in every way: each goes to upstreams
 * of its own group alone, with that upstream's one credential and no other secret, and each caller gets the reply to its own request.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { connect, type ClientHttp2Session } from 'node:http2'
import httpProxy from '@fastify/http-proxy'
import fc from 'fast-check'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions, type LlmGatewayOptions } from '../../plugins/index.js'
import { everyProtocol, listen } from '../helpers/gateway.js'
import { startUpstream, type Script, type Upstream } from '../helpers/upstream.js'
import { Wire } from '../helpers/wire.js'

const runs = Number(process.env['FUZZ_RUNS'] ?? 60)

const names = ['header', 'bearer', 'query', 'routed', 'other', 'elsewhere'] as const
type Name = typeof names[number]
type Group = 'a' | 'b'

const keys = { a: 'canary-caller-a', b: 'canary-caller-b' } as const

function secretOf (name: Name): string {
  return `canary-secret-${name}`
}

/** What each upstream may see that begins as a canary does. */
const own: Readonly<Record<Name, readonly string[]>> = {
  header: [secretOf('header')],
  bearer: [secretOf('bearer')],
  query: [secretOf('query'), 'canary-second-query'],
  routed: [secretOf('routed')],
  other: [secretOf('other')],
  elsewhere: [],
}
const groupOf: Readonly<Record<Name, Group | null>> = { header: 'a', bearer: 'a', query: 'a', routed: 'a', other: 'b', elsewhere: null }

function options (url: Readonly<Record<Name, string>>, more: Partial<LlmGatewayOptions>): LlmGatewayOptions {
  const retryOn = ['connect', 'reset', 'timeout', 'first_event', 429, 500, 502, 503, 504, 529] as const
  return {
    upstreams: {
      header: { url: url.header, credential: secretOf('header'), credentialHeader: 'api-key' },
      bearer: { url: url.bearer, credential: async () => secretOf('bearer') },
      query: { url: url.query, query: { key: secretOf('query') }, headers: { 'x-portkey-api-key': 'canary-second-query' } },
      routed: { url: url.routed, credential: secretOf('routed'), models: { 'routed-m': 'm' } },
      other: { url: url.other, credential: secretOf('other') },
    },
    pools: { pool: { members: ['header', 'bearer', 'query'], retryOn, attempts: 3 } },
    groups: {
      a: { protocols: everyProtocol, upstream: 'pool', routes: [{ models: ['routed-*'], upstream: 'routed' }] },
      b: { protocols: everyProtocol, upstream: 'other' },
    },
    keys: (['a', 'b'] as const).map((id) => ({ id, group: id, secret: keys[id] })),
    metrics: false,
    log: false,
    ...more,
  }
}

interface Ask {
  readonly group: Group
  readonly family: 'openai' | 'anthropic' | 'gemini'
  readonly model: 'm' | 'routed-m'
  readonly stream: boolean
  /** Where the key of the other group stands, too. */
  readonly beside: readonly string[]
  readonly sticky: readonly string[]
}

const ask: fc.Arbitrary<Ask> = fc.record({
  group: fc.constantFrom('a' as const, 'b' as const),
  family: fc.constantFrom('openai' as const, 'anthropic' as const, 'gemini' as const),
  model: fc.constantFrom('m' as const, 'm' as const, 'routed-m' as const),
  stream: fc.boolean(),
  beside: fc.uniqueArray(fc.constantFrom('cookie', 'api-key', 'x_api_key', 'X-Auth-Token', 'proxy-authorization'), { maxLength: 3 }),
  sticky: fc.uniqueArray(fc.constantFrom('session-id', 'x-session-id', 'x-claude-code-session-id'), { maxLength: 1 }),
})

const fault: fc.Arbitrary<'none' | 'redirect' | 'cut' | 'late' | 'event' | number> = fc.oneof(
  { weight: 3, arbitrary: fc.constant('none' as const) },
  { weight: 3, arbitrary: fc.constantFrom(307, 401, 403, 429, 500, 503, 529) },
  { weight: 2, arbitrary: fc.constantFrom('cut' as const, 'late' as const, 'redirect' as const, 'event' as const) }
)

/** Which request it is stands in its words, and in its reply. */
function bodyOf ({ family, model, stream }: Ask, mark: string): string {
  const streamed = stream ? { stream: true } : {}
  if (family === 'gemini') return JSON.stringify({ contents: [{ parts: [{ text: mark }] }] })
  if (family === 'anthropic') return JSON.stringify({ model, max_tokens: 5, messages: [{ role: 'user', content: mark }], ...streamed })
  return JSON.stringify({ model, messages: [{ role: 'user', content: mark }], ...streamed })
}

function pathOf ({ family, model, stream }: Ask): string {
  if (family === 'gemini') return `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`
  return family === 'anthropic' ? '/v1/messages' : '/v1/chat/completions'
}

const carriers = { openai: 'authorization', anthropic: 'x-api-key', gemini: 'x-goog-api-key' } as const

function headersOf ({ family, group, beside, sticky }: Ask): Array<[string, string]> {
  const second = keys[group === 'a' ? 'b' : 'a']
  const key: [string, string] = [carriers[family], family === 'openai' ? `Bearer ${keys[group]}` : keys[group]]
  const bearer: Array<[string, string]> = family === 'openai' ? [['x-api-key', second]] : [['authorization', `Bearer ${second}`]]
  return [
    ['content-type', 'application/json'], ['anthropic-version', '2023-06-01'], key, ...bearer,
    ...beside.map((name): [string, string] => [name, `key=${second}`]), ...sticky.map((name): [string, string] => [name, 'the-same']),
  ]
}

type Send = (url: string, asks: readonly Ask[], marks: readonly string[]) => Promise<string[]>

/** All of them at once on one connection, before any reply. */
const pipelined: Send = async (url, asks, marks) => {
  const wire = new Wire(url)
  wire.send(asks.map((made, at) => {
    const body = bodyOf(made, String(marks[at]))
    return [
      `POST ${pathOf(made)} HTTP/1.1`, 'host: h', ...headersOf(made).map((pair) => pair.join(': ')),
      `content-length: ${body.length}`, '', body,
    ].join('\r\n')
  }).join(''))
  const replies: string[] = []
  // What broke off in the middle of its stream ends the connection.
  while (replies.length < asks.length) replies.push(await wire.reply().then(({ body }) => body, () => ''))
  wire.destroy()
  return replies
}

const multiplexed: Send = async (url, asks, marks) => {
  const session = connect(url)
  session.on('error', () => {})
  const replies = await Promise.all(asks.map(async (made, at) => await overHttp2(session, made, String(marks[at]))))
  session.destroy()
  return replies
}

async function overHttp2 (session: ClientHttp2Session, made: Ask, mark: string): Promise<string> {
  const stream = session.request({ ':method': 'POST', ':path': pathOf(made), ...Object.fromEntries(headersOf(made)) })
  stream.end(bodyOf(made, mark))
  const chunks: Buffer[] = []
  try {
    for await (const chunk of stream) chunks.push(chunk)
  } catch {}
  return Buffer.concat(chunks).toString()
}

interface Place {
  readonly build: (app: FastifyInstance, urls: Readonly<Record<Name, string>>) => Promise<void>
  readonly send: Send
  readonly http2?: true
}

async function ownRoutes (app: FastifyInstance, urls: Readonly<Record<Name, string>>): Promise<void> {
  await app.register(llmGateway, options(urls, {}))
}

async function mounts (app: FastifyInstance, urls: Readonly<Record<Name, string>>): Promise<void> {
  await app.register(llmGateway, options(urls, { routes: false }))
  const headers = { authorization: 'Bearer canary-of-the-mount', 'x-any': 'canary-any' }
  const rewriteRequestHeaders = (_: unknown, given: IncomingHttpHeaders): IncomingHttpHeaders => ({ ...given, ...headers })
  for (const prefix of ['/v1', '/v1beta']) {
    await app.register(httpProxy, {
      ...proxyOptions(), upstream: urls.elsewhere, prefix, rewritePrefix: prefix, replyOptions: { rewriteRequestHeaders },
    })
  }
}

const places: Readonly<Record<string, Place>> = {
  'own routes, pipelined': { build: ownRoutes, send: pipelined },
  'own routes, over HTTP/2': { build: ownRoutes, send: multiplexed, http2: true },
  'adapted mounts, pipelined': { build: mounts, send: pipelined },
  'adapted mounts, over HTTP/2': { build: mounts, send: multiplexed, http2: true },
}

const plain: FastifyServerOptions = {}

const wait = async (): Promise<void> => { await new Promise((resolve) => { setTimeout(resolve, 3) }) }

function scriptOf (fault: string | number, name: Name, mark: string, elsewhere: string): Script {
  const error = { error: { message: `${mark} failed` } }
  if (typeof fault === 'number') return { status: fault, body: error, headers: fault === 307 ? { location: `${elsewhere}/v1/x` } : {} }
  if (fault === 'redirect') return { status: 308, body: error, headers: { location: elsewhere, refresh: `0; url=${elsewhere}` } }
  if (fault === 'cut') return { cutAt: 'headers' }
  if (fault === 'event') return { headers: { 'content-type': 'text/event-stream' }, body: `data: ${JSON.stringify(error)}\n\n` }
  return { body: { mark, name }, ...fault === 'late' && { before: wait } }
}

function markIn (text: string): string {
  return /mark-[ab]-\d+-/.exec(text)?.[0] ?? 'none'
}

async function startAll (t: Test): Promise<Record<Name, Upstream>> {
  const [header, bearer, query, routed, other, elsewhere] = await Promise.all(names.map(async () => await startUpstream(t)))
  if (!header || !bearer || !query || !routed || !other || !elsewhere) throw new Error('all were started')
  return { header, bearer, query, routed, other, elsewhere }
}

for (const [place, { build, send, http2 }] of Object.entries(places)) {
  t.test(place, async (t) => {
    const upstreams = await startAll(t)
    const wrong: string[] = []
    let faults: ReadonlyArray<string | number> = []
    let arrived = 0
    for (const name of names) {
      upstreams[name].respond = ({ url, rawHeaders, body }) => {
        const text = [url, ...rawHeaders, body.toString()].join('\n')
        const mark = markIn(text)
        const found = text.split(/[\s=;,&?"]+/).filter((word) => word.startsWith('canary-'))
        if (!mark.startsWith(`mark-${groupOf[name]}-`)) wrong.push(`${mark} went to ${name}`)
        if (found.toSorted().join() !== own[name].toSorted().join()) wrong.push(`${name} saw ${found.join()}:\n${text}`)
        return scriptOf(faults[arrived++ % faults.length] ?? 'none', name, mark, upstreams.elsewhere.url)
      }
    }
    const urls = Object.fromEntries(names.map((name) => [name, upstreams[name].url])) as Record<Name, string>
    const settings: FastifyServerOptions = Object.assign({}, plain, http2 === true && { http2 })
    const app = Fastify(settings)
    t.teardown(() => app.close())
    await build(app, urls)
    const url = await listen(app)
    let made = 0
    let answered = 0
    await fc.assert(fc.asyncProperty(
      fc.array(ask, { minLength: 2, maxLength: 8 }), fc.array(fault, { minLength: 1, maxLength: 8 }),
      async (asks, given) => {
        faults = given
        const marks = asks.map(({ group }) => `mark-${group}-${made++}-`)
        const replies = await send(url, asks, marks)
        for (const [at, reply] of replies.entries()) {
          const mark = markIn(reply)
          if (mark !== 'none' && mark !== marks[at]) wrong.push(`${marks[at]} got the reply to ${mark}`)
          answered += mark === 'none' ? 0 : 1
          if (reply.includes('canary-')) wrong.push(`a secret came back: ${reply}`)
        }
        const told = wrong.splice(0)
        if (told.length > 0) throw new Error(told.join('\n'))
      }
    ), { numRuns: runs })
    t.ok(answered > runs / 2, `${answered} of ${made} requests had their reply, ${arrived} came to an upstream`)
    t.equal(upstreams.elsewhere.seen.length, 0)
    for (const name of names.slice(0, -1)) t.ok(upstreams[name].seen.length > 0, `${name} was asked`)
  })
}
