import { readFileSync } from 'node:fs'
import Fastify from 'fastify'
import t from 'tap'
import { parse } from 'yaml'
import llmGateway from '../../plugins/index.js'
import type { UpstreamOptions } from '../../plugins/upstreams/options.js'
import { everyProtocol, gatewayOptions, secret, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

interface Case {
  readonly base: string
  readonly options?: Omit<UpstreamOptions, 'url'>
  readonly url?: string
  /** What the far side saw: path and query, and the header of its credential. */
  readonly seen: string
  readonly header?: readonly [name: string, value: string]
}

const verbatim = { path: 'verbatim' } as const
const bearer = ['authorization', 'Bearer provider'] as const
const apiKey = ['x-api-key', 'provider'] as const
const messages = '/v1/messages'
const generate = '/v1beta/models/gemini-2:generateContent'

const cases: Readonly<Record<string, Case>> = {
  openai: { base: '', seen: '/v1/chat/completions' },
  'gemini as openai': { base: '/v1beta/openai/', options: verbatim, seen: '/v1beta/openai/chat/completions' },
  gemini: { base: '', url: generate, seen: '/v1beta/models/gemini-2:generateContent', header: ['x-goog-api-key', 'provider'] },
  zhipu: { base: '/api/paas/v4', options: verbatim, seen: '/api/paas/v4/chat/completions' },
  'zhipu coding': { base: '/api/coding/paas/v4', options: verbatim, seen: '/api/coding/paas/v4/chat/completions' },
  'z.ai': { base: '/api/anthropic', url: messages, seen: '/api/anthropic/v1/messages', header: apiKey },
  ark: { base: '/api/v3', options: { ...verbatim, models: { 'gpt-5': 'ep-2026' } }, seen: '/api/v3/chat/completions' },
  qianfan: { base: '/v2', options: verbatim, seen: '/v2/chat/completions' },
  dashscope: { base: '/compatible-mode/v1', seen: '/compatible-mode/v1/chat/completions' },
  github: { base: '/inference', options: verbatim, seen: '/inference/chat/completions' },
  groq: { base: '/openai/v1', seen: '/openai/v1/chat/completions' },
  fireworks: { base: '/inference/v1', seen: '/inference/v1/chat/completions' },
  'fireworks messages': { base: '/inference', url: messages, seen: '/inference/v1/messages', header: apiKey },
  'azure v1': {
    base: '/openai/v1',
    options: { credentialHeader: 'api-key', query: { 'api-version': 'preview' } },
    seen: '/openai/v1/chat/completions?api-version=preview',
    header: ['api-key', 'provider'],
  },
  'azure deployments': {
    base: '/openai/deployments/{model}',
    options: { ...verbatim, credentialHeader: 'api-key', query: { 'api-version': '2024-10-21' }, models: { 'gpt-5': 'prod-gpt5' } },
    seen: '/openai/deployments/prod-gpt5/chat/completions?api-version=2024-10-21',
    header: ['api-key', 'provider'],
  },
  'azure with a token': {
    base: '/openai/v1',
    options: { credentialHeader: 'Authorization', credential: async () => 'provider' },
    seen: '/openai/v1/chat/completions',
  },
  deepseek: { base: '', options: verbatim, seen: '/chat/completions' },
  'deepseek messages': { base: '/anthropic', url: messages, seen: '/anthropic/v1/messages', header: apiKey },
  moonshot: { base: '/v1', seen: '/v1/chat/completions' },
  minimax: { base: '/anthropic', url: messages, seen: '/anthropic/v1/messages', header: apiKey },
  xiaomi: { base: '/anthropic/v1', url: messages, seen: '/anthropic/v1/messages', header: apiKey },
  bedrock: { base: '/openai/v1', seen: '/openai/v1/chat/completions' },
  'vertex openapi': {
    base: '/v1/projects/p/locations/l/endpoints/openapi',
    options: verbatim,
    seen: '/v1/projects/p/locations/l/endpoints/openapi/chat/completions',
  },
  'vertex gemini': {
    base: '/v1/projects/p/locations/l/publishers/google',
    options: { ...verbatim, credentialHeader: 'authorization' },
    url: `${generate}?alt=sse`,
    seen: '/v1/projects/p/locations/l/publishers/google/models/gemini-2:generateContent?alt=sse',
  },
  cloudflare: {
    base: '/v1/acct/gw/anthropic',
    options: { headers: { 'cf-aig-authorization': 'Bearer gw' } },
    url: messages,
    seen: '/v1/acct/gw/anthropic/v1/messages',
    header: apiKey,
  },
  openrouter: {
    base: '/api/v1',
    options: { headers: { 'HTTP-Referer': 'https://example.com', 'X-Title': 'Our gateway' } },
    seen: '/api/v1/chat/completions',
  },
  perplexity: { base: '', options: verbatim, seen: '/chat/completions' },
  cohere: { base: '/compatibility/v1', seen: '/compatibility/v1/chat/completions' },
  novita: { base: '/v3/openai', options: verbatim, seen: '/v3/openai/chat/completions' },
}

t.test('every base that providers have is reached, with its one credential in its own header', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: { id: 'x', choices: [], model: 'theirs' } })
  const entries = Object.entries(cases).map(([name, each], i) => ({ name, id: `u${i}`, ...each }))
  const { app } = await startGateway(t, '', {
    upstreams: Object.fromEntries(entries.map(({ id, base, options }) => [
      id, { url: upstream.url + base, credential: 'provider', ...options },
    ])),
    groups: Object.fromEntries(entries.map(({ id }) => [id, { protocols: everyProtocol, upstream: id }])),
    keys: entries.map(({ id }) => ({ id, group: id, secret: `caller-${id}` })),
  })
  for (const { name, id, url = '/v1/chat/completions', seen, header = bearer, options } of entries) {
    const credential: Record<string, string> = url === messages
      ? { 'x-api-key': `caller-${id}`, 'anthropic-version': '2023-06-01' }
      : url.startsWith(generate) ? { 'x-goog-api-key': `caller-${id}` } : { authorization: `Bearer caller-${id}` }
    const payload = url.startsWith(generate)
      ? { contents: [{ parts: [{ text: 'Hi' }] }] }
      : { model: 'gpt-5', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] }
    const reply = await app.inject({ method: 'POST', url, headers: { ...credential, 'cf-aig-authorization': 'of the caller' }, payload })
    t.equal(reply.statusCode, 200, `${name}: ${reply.body}`)
    const request = await upstream.requests.next()
    t.equal(request.url, seen, name)
    t.equal(request.headers[header[0]], header[1], name)
    const carriers = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'].filter((carrier) => request.headers[carrier] !== undefined)
    t.strictSame(carriers, [header[0]], `${name} has one credential`)
    t.notMatch(JSON.stringify(request.rawHeaders), /caller-/, `${name} does not see the caller's`)
    for (const [own, value] of Object.entries(options?.headers ?? {})) t.equal(request.headers[own.toLowerCase()], value)
    if (!url.startsWith(generate)) t.equal(request.json.model, options?.models?.['gpt-5'] ?? 'gpt-5', name)
  }
})

/** The rows of the page: each address, and what stands beside it. */
function * addressesOfProviders (): Generator<readonly [url: string, options: Record<string, unknown>]> {
  const page = readFileSync(new URL('../../docs/upstreams.md', import.meta.url), 'utf8')
  const [, section = ''] = /### Addresses of providers\n([^]*?)\n## /.exec(page) ?? []
  for (const [, urls = '', beside = ''] of section.matchAll(/^\| [^|]+ \| ([^|]*https[^|]*) \|([^|]*)\|$/gm)) {
    const options = Object.assign({}, ...[...beside.matchAll(/`(\w+: [^`]+)`/g)].map(([, text = '']) => parse(text)))
    for (const [, url = ''] of urls.matchAll(/`([^`]+)`/g)) yield [url, options]
  }
}

t.test('each address of a provider that the page names is one of these bases, with the same options', async (t) => {
  const rows = [...addressesOfProviders()]
  t.ok(rows.length > 15, `${rows.length} addresses`)
  const names = { PROJECT: 'p', REGION: 'l', ACCOUNT: 'acct', GATEWAY: 'gw' }
  for (const [url, { path = 'canonical', credentialHeader, query }] of rows) {
    const base = Object.entries(names).reduce((text, [name, short]) => text.replace(name, short), url.replace(/^https:\/\/[^/]+/, ''))
    t.ok(Object.values(cases).some(({ base: tested, options = {} }) => {
      return tested.replace(/\/$/, '') === base && (options.path ?? 'canonical') === path &&
        options.credentialHeader === credentialHeader && (query === undefined || String(query) === String(options.query))
    }), url)
  }
})

t.test('an alias is one value of the request, and both names are told', async (t) => {
  const upstream = await startUpstream(t)
  const lines: string[] = []
  const { app, settled } = await startGateway(t, '', {
    upstreams: { main: { url: upstream.url, credential: 'provider', models: { ours: 'theirs' } } },
    metrics: { models: ['ours'] },
  }, { logger: { stream: { write: (line: string) => { lines.push(line) } } } })
  const headers = { authorization: 'Bearer sk-caller-0123456789', 'content-type': 'application/json' }
  const payload = '{ "messages" : [{"role":"user","content":"\\"model\\":\\"ours\\"","n":1.0}],\n"model":"our\\u0073" }'
  t.equal((await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload })).statusCode, 200)
  const request = await upstream.requests.next()
  t.equal(request.body.toString(), payload.replace('"our\\u0073"', '"theirs"'))
  t.equal(request.headers['content-length'], String(request.body.length))
  t.match(await settled.next(), { model: 'ours', routing: { sentModel: 'theirs' } })
  t.match(JSON.parse(lines.find((line) => line.includes('model request')) ?? '{}'), { llm: { model: 'ours', upstream_model: 'theirs' } })
  const gemini = await app.inject({
    method: 'POST',
    url: '/v1beta/models/ours:generateContent',
    headers: { 'x-goog-api-key': 'sk-caller-0123456789' },
    payload: { contents: [{ parts: [{ text: 'Hi' }] }] },
  })
  t.equal(gemini.statusCode, 200)
  t.equal((await upstream.requests.next()).url, '/v1beta/models/theirs:generateContent')
  const batch = await app.inject({
    method: 'POST',
    url: '/v1beta/models/ours:batchEmbedContents',
    headers: { 'x-goog-api-key': 'sk-caller-0123456789', 'content-type': 'application/json' },
    payload: '{"requests":[{"model":"models/ours","content":{"parts":[{"text":"ours"}]}}]}',
  })
  t.equal(batch.statusCode, 200)
  const { url, body } = await upstream.requests.next()
  t.equal(url, '/v1beta/models/theirs:batchEmbedContents')
  t.equal(body.toString(), '{"requests":[{"model":"models/theirs","content":{"parts":[{"text":"ours"}]}}]}')
  const metrics = (await app.inject('/metrics')).body
  t.match(metrics, /llm_gateway_model_aliases\{upstream="main",model="ours",sent_as="theirs"\} 1/)
  t.match(metrics, /llm_gateway_upstream_attempts_total\{upstream="main",result="ok"\} 3/)
  t.match(metrics, /llm_gateway_upstream_active_requests\{upstream="main"\} 0/)
  t.match(metrics, /llm_gateway_upstream_available\{upstream="main"\} 1/)
})

t.test('requests go by their models, and a model that no route takes is a native 404', async (t) => {
  const [one, two] = [await startUpstream(t), await startUpstream(t)]
  const { app } = await startGateway(t, '', {
    upstreams: { one: { url: one.url, credential: 'one' }, two: { url: two.url, credential: 'two' } },
    groups: {
      all: { protocols: everyProtocol, routes: [{ models: ['glm-*'], upstream: 'one' }, { models: ['gpt-5', 'o3'], upstream: 'two' }] },
    },
  })
  const headers = { authorization: 'Bearer sk-caller-0123456789' }
  const chat = async (model: string) => await app.inject({
    method: 'POST', url: '/v1/chat/completions', headers, payload: { model, messages: [{ role: 'user', content: 'Hi' }] },
  })
  t.equal((await chat('glm-4.6')).statusCode, 200)
  t.equal((await chat('o3')).statusCode, 200)
  t.strictSame([one.seen.length, two.seen.length], [1, 1])
  const none = await chat('claude')
  t.equal(none.statusCode, 404)
  t.match(none.json(), { error: { code: 'model_not_found', param: 'model', type: 'invalid_request_error' } })
  t.strictSame([one.seen.length, two.seen.length], [1, 1], 'nobody was asked')
  t.equal((await app.inject({ url: '/v1/models', headers })).statusCode, 200)
  t.strictSame([one.seen.length, two.seen.length], [2, 1], 'a list that only a provider knows')
})

t.test('what a host says of caches stands, where no upstream says otherwise', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'private')
    done()
  })
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, models: ['m'] } } })
  upstream.queue({ body: { id: 'resp_1' } })
  upstream.queue({ headers: { 'cache-control': 'max-age=5' }, body: { id: 'resp_1' } })
  const stored = '/v1/responses/resp_1'
  for (const [url, stands] of [['/v1/models', 'private'], [stored, 'private'], [stored, 'max-age=5']] as const) {
    const reply = await app.inject({ url, headers: { authorization: `Bearer ${secret}` } })
    t.match([reply.statusCode, reply.headers['cache-control']], [200, stands], url)
  }
})

t.test('the models of a group are told without asking a provider', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, {
    groups: { all: { protocols: everyProtocol, models: ['gpt-5', 'claude'] } },
  })
  const asked: ReadonlyArray<readonly [Record<string, string>, object]> = [
    [{ authorization: 'Bearer sk-caller-0123456789' }, { object: 'list', data: [{ id: 'gpt-5' }, { id: 'claude' }] }],
    [{ 'x-api-key': 'sk-caller-0123456789', 'anthropic-version': '2023-06-01' }, {
      data: [{ type: 'model', id: 'gpt-5' }, { id: 'claude' }], has_more: false,
    }],
    [{ 'x-goog-api-key': 'sk-caller-0123456789' }, { models: [{ name: 'models/gpt-5' }, { name: 'models/claude' }] }],
  ]
  for (const [headers, body] of asked) {
    const reply = await app.inject({ url: '/v1/models', headers })
    t.match(reply.json(), body)
    t.match(reply.headers, { 'content-type': /^application\/json/, 'x-request-id': /./, 'cache-control': 'no-store' })
    t.match(await settled.next(), { outcome: 'ok', status: 200, routing: { upstream: null } })
  }
  t.match((await app.inject({ url: '/v1/models/claude', headers: { authorization: 'Bearer sk-caller-0123456789' } })).json(), {
    id: 'claude',
  })
  t.equal(upstream.seen.length, 0)
})

t.test('a base that needs the model refuses what names none, and nothing is sent', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, '', {
    upstreams: { main: { url: `${upstream.url}/deployments/{model}`, path: 'verbatim', credential: 'x' } },
  })
  const reply = await app.inject({ url: '/v1/models', headers: { authorization: 'Bearer sk-caller-0123456789' } })
  t.equal(reply.statusCode, 400)
  t.match(reply.json(), { error: { code: 'model_required' } })
  t.match(await settled.next(), { errorCode: 'model_required', outcome: 'client_error', times: { sentAt: 0 } })
  t.equal(upstream.seen.length, 0)
})
