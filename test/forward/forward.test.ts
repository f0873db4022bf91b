import { once } from 'node:events'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import { modelCallOf, type ModelCall } from '../../plugins/core/call/model-call.js'
import llmGateway, { proxyOptions, type GroupOptions } from '../../plugins/index.js'
import { call, gatewayOptions, listen, providerSecret, read, secret, startGateway } from '../helpers/gateway.js'
import { replyFixture, sha256, startUpstream } from '../helpers/upstream.js'

const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const streamed = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'

async function waitFor (condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate)
}

t.test('the bytes go through unchanged in both directions', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const body = '{ "model" : "m",  "big":12345678901234567890, "one": 1.0, "messages":[{"role":"user","content":"h\\u00e9"}] }'
  const reply = await app.inject({ method: 'POST', url: '/v1/v1/chat/completions?a=%20b', headers, payload: body })
  t.equal(reply.statusCode, 200)
  t.equal(sha256(reply.rawPayload), sha256(replyFixture('chat_completions.json')))
  const seen = await upstream.requests.next()
  t.equal(seen.sha256, sha256(body))
  t.equal(seen.url, '/v1/chat/completions?a=%20b')
})

const mount = { prefix: '/v1', rewritePrefix: '/v1' }
const sites: Readonly<Record<string, (app: FastifyInstance, upstream: string) => Promise<unknown>>> = {
  'routes of our own': async (app, upstream) => await app.register(llmGateway, gatewayOptions(upstream)),
  'an adapted mount': async (app, upstream) => {
    await app.register(llmGateway, { ...gatewayOptions(upstream), routes: false })
    await app.register(httpProxy, { ...proxyOptions(), upstream, ...mount })
  },
  'a mount of the host': async (app, upstream) => {
    const { upstreams, ...options } = gatewayOptions(upstream)
    await app.register(llmGateway, { ...options, routes: false })
    await app.register(httpProxy, { upstream, ...mount })
  },
}

for (const [site, build] of Object.entries(sites)) {
  t.test(`what was parsed of a body is not kept while its reply is awaited: ${site}`, async (t) => {
    const upstream = await startUpstream(t)
    const calls: Array<ModelCall | null> = []
    const app = Fastify()
    t.teardown(() => app.close())
    app.addHook('preHandler', async (request) => {
      const llm = modelCallOf(request)
      calls.push(llm)
      t.match(llm?.body.json, { model: 'm' })
    })
    await build(app, upstream.url)
    for (let turn = 0; turn < 2; turn += 1) {
      const kept: unknown[] = []
      upstream.queue({ fixture: 'chat_completions.json', before: () => kept.push(calls.at(-1)?.body.json) })
      t.equal((await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })).statusCode, 200)
      t.ok(kept.length > 0 && kept.every((json) => json === undefined))
    }
    t.ok(calls[0] !== null && calls.length === 2)
  })
}

t.test('one upstream credential replaces every carrier of the caller', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const carriers = {
    cookie: `k=${secret}`,
    'x-api-key': 'other',
    'x-goog-api-key': 'other',
    'api-key': 'other',
    x_api_key: 'other',
    'proxy-authorization': 'x',
  }
  const hop = {
    connection: 'authorization, x-custom',
    'x-custom': '1',
    te: 'trailers',
    'keep-alive': 'timeout=5',
    'proxy-connection': 'keep-alive',
    trailer: 'x-custom',
    upgrade: 'h2c',
    'http2-settings': 'AA',
    'x-forwarded-for': '1.2.3.4',
    'x-forwarded-access-token': 'signed-in',
    x_forwarded_email: 'me@example.com',
    baggage: 'tenant=1',
  }
  const kept = {
    'openai-organization': 'org', 'anthropic-beta': 'a,b', 'x-stainless-lang': 'js', 'idempotency-key': '7', traceparent: '00-1-2-01',
  }
  await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { ...headers, ...carriers, ...hop, ...kept }, payload: chat })
  const { headers: got, rawHeaders } = await upstream.requests.next()
  t.equal(got.authorization, `Bearer ${providerSecret}`)
  t.match(got, kept)
  for (const name of [
    ...Object.keys(carriers), ...Object.keys(hop).filter((name) => name !== 'connection'), 'expect',
  ]) t.equal(got[name], undefined, name)
  t.notOk(rawHeaders.join().includes(secret))
  t.equal(rawHeaders.filter((name) => name.toLowerCase() === 'authorization').length, 1)
})

t.test('the caller\'s own key travels on where the upstream wants it, as its family\'s header', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, { upstreams: { main: { url: `${upstream.url}/base/v1/`, credential: 'forward' } } })
  await app.inject({
    method: 'POST',
    url: '/v1/messages',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'anthropic-version': '2026-10-21' },
    payload: '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}',
  })
  const seen = await upstream.requests.next()
  t.equal(seen.headers['x-api-key'], secret)
  t.equal(seen.headers.authorization, undefined)
  t.equal(seen.url, '/base/v1/messages', 'the version at the end of the base address is not doubled')
})

t.test('status, headers and bytes of an upstream error pass unchanged, without what is not for the caller', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const body = '{"error":{"message":"slow","type":"x","param":null,"code":"rate_limit_exceeded"}, "big": 1.0}'
  const left = {
    'set-cookie': 'a=b',
    'set-cookie2': 'a=b',
    'alt-svc': 'h3',
    'strict-transport-security': 'max-age=1; includeSubDomains',
    'public-key-pins': 'max-age=1',
    'expect-ct': 'max-age=1',
    nel: '{}',
    'report-to': '{}',
    'reporting-endpoints': 'a="/b"',
    'clear-site-data': '"*"',
    'proxy-authenticate': 'Basic',
    'proxy-connection': 'keep-alive',
    te: 'trailers',
    'http2-settings': 'AA',
    'keep-alive': 'timeout=5',
    upgrade: 'h2c',
    'x-drop': '1',
  }
  upstream.queue({
    status: 429,
    headers: {
      'retry-after': '7',
      'retry-after-ms': '6500',
      'x-should-retry': 'true',
      'x-request-id': 'req-up',
      'x-ratelimit-remaining-requests': '0',
      connection: 'x-drop, keep-alive',
      ...left,
      'openai-processing-ms': '12',
    },
    body: Buffer.from(body),
  })
  const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
  t.equal(reply.statusCode, 429)
  t.equal(reply.body, body)
  t.match(reply.headers, {
    'retry-after': '7',
    'retry-after-ms': '6500',
    'x-should-retry': 'true',
    'x-request-id': 'req-up',
    'request-id': 'req-up',
    'openai-processing-ms': '12',
  })
  for (const name of Object.keys(left)) t.equal(reply.headers[name], undefined, name)
  t.notMatch(reply.headers, { connection: /x-drop/ })
  t.match(await settled.next(), {
    outcome: 'client_error', upstreamReply: { status: 429, requestId: 'req-up' }, usage: { tokens: null, missing: null },
  })
})

t.test('what a provider has against the operator is no mistake of the caller', async (t) => {
  const upstream = await startUpstream(t)
  const upstreams = { main: { url: upstream.url, credential: providerSecret }, passing: { url: upstream.url, credential: 'forward' } }
  const groups: Record<string, GroupOptions> = {
    all: { protocols: ['chat_completions'], upstream: 'main' }, own: { protocols: ['chat_completions'], upstream: 'passing' },
  }
  const keys = [{ id: 'caller', group: 'all', secret }, { id: 'payer', group: 'own', secret: 'sk-own' }]
  const { app, settled } = await startGateway(t, upstream.url, { upstreams, groups, keys })
  const cases = [
    [401, 'upstream_error', 'client_error'], [402, 'upstream_error', 'client_error'], [302, 'upstream_error', 'upstream_error'],
    [304, 'ok', 'ok'], [400, 'client_error', 'client_error'], [403, 'client_error', 'client_error'], [429, 'client_error', 'client_error'],
  ] as const
  for (const [status, withOurs, withTheirs] of cases) {
    for (const [key, outcome] of [[secret, withOurs], ['sk-own', withTheirs]] as const) {
      upstream.queue({ status, body: '', length: false })
      const reply = await app.inject({
        method: 'POST', url: '/v1/chat/completions', headers: { ...headers, authorization: `Bearer ${key}` }, payload: chat,
      })
      t.equal(reply.statusCode, status)
      t.equal((await settled.next()).outcome, outcome, `${status} with ${key}`)
    }
  }
})

t.test('a caller who got an error in place of a page has not left', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const base = await listen(app)
  let go = (): void => {}
  const answered = new Promise<void>((resolve) => { go = resolve })
  upstream.queue({
    status: 502,
    headers: { 'content-type': 'text/html' },
    body: '<h1>Bad Gateway</h1>',
    split: [5],
    before: async (write) => { if (write === 1) await answered },
  })
  const reply = await call(`${base}/v1/chat/completions`, { body: streamed }).reply
  t.equal((await read(reply)).cut, false)
  const { outcome, abortedBy, status } = await settled.next()
  go()
  t.strictSame([outcome, abortedBy, status], ['upstream_error', null, 502])
})

t.test('a page of HTML in place of an error becomes the error of the protocol', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  for (const [status, split] of [[502, undefined], [502, 'bytes'], [503, undefined]] as const) {
    upstream.queue({
      status,
      headers: { 'content-type': 'text/html; charset=utf-8', etag: 'x', 'retry-after': '3' },
      body: '<h1>Bad Gateway</h1>',
      ...(split && { split }),
    })
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
    t.equal(reply.statusCode, status)
    t.match(reply.json(), { error: { code: 'upstream_error', param: null } })
    t.match(reply.headers, { 'content-type': 'application/json; charset=utf-8', 'retry-after': '3' })
    t.equal(reply.headers.etag, undefined)
  }
})

t.test('a page in place of an error tells what its status is about, and whether to try again', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const calls = [
    ['/v1/chat/completions', { authorization: `Bearer ${secret}` }, chat, 'type'],
    [
      '/v1/messages', { 'x-api-key': secret, 'anthropic-version': '2023-06-01' },
      '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}', 'type',
    ],
    ['/v1beta/models/m:generateContent', { 'x-goog-api-key': secret }, '{"contents":[{"parts":[{"text":"hi"}]}]}', 'status'],
  ] as const
  const cases: ReadonlyArray<readonly [status: number, shouldRetry: string | undefined, words: readonly string[]]> = [
    [400, 'false', ['invalid_request_error', 'invalid_request_error', 'INVALID_ARGUMENT']],
    [401, 'false', ['authentication_error', 'authentication_error', 'UNAUTHENTICATED']],
    [402, 'false', ['insufficient_quota', 'billing_error', 'PERMISSION_DENIED']],
    [403, 'false', ['invalid_request_error', 'permission_error', 'PERMISSION_DENIED']],
    [404, 'false', ['invalid_request_error', 'not_found_error', 'NOT_FOUND']],
    [408, undefined, ['invalid_request_error', 'invalid_request_error', 'INVALID_ARGUMENT']],
    [413, 'false', ['invalid_request_error', 'request_too_large', 'INVALID_ARGUMENT']],
    [429, undefined, ['rate_limit_error', 'rate_limit_error', 'RESOURCE_EXHAUSTED']],
    [500, undefined, ['server_error', 'api_error', 'INTERNAL']],
    [503, undefined, ['server_error', 'overloaded_error', 'UNAVAILABLE']],
    [504, undefined, ['server_error', 'timeout_error', 'DEADLINE_EXCEEDED']],
    [529, undefined, ['server_error', 'overloaded_error', 'UNAVAILABLE']],
  ]
  for (const [status, shouldRetry, words] of cases) {
    for (const [index, [url, own, payload, word]] of calls.entries()) {
      upstream.queue({ status, headers: { 'content-type': 'text/html' }, body: '<h1>No</h1>' })
      const reply = await app.inject({ method: 'POST', url, headers: { 'content-type': 'application/json', ...own }, payload })
      t.equal(reply.statusCode, status, reply.body)
      t.equal(reply.json().error[word], words[index], `${status} ${url}`)
      t.equal(reply.headers['x-should-retry'], shouldRetry, `${status} ${url}`)
    }
  }
})

t.test('an upstream that says whether to try again is believed, also in place of whose page the caller has an error', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  for (const [status, said] of [[403, 'true'], [503, 'false']] as const) {
    upstream.queue({ status, headers: { 'content-type': 'text/html', 'x-should-retry': said }, body: '<h1>No</h1>' })
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
    t.match([reply.statusCode, reply.headers['x-should-retry']], [status, said])
  }
})

t.test('a status that HTTP does not have is a reply that cannot be read', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  for (const contentType of ['application/json', 'text/html']) {
    upstream.queue({ status: 701, headers: { 'content-type': contentType }, body: '{}' })
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
    t.match([reply.statusCode, reply.json().error.code], [502, 'upstream_invalid'])
  }
})

t.test('an event stream arrives chunk by chunk, with the headers that keep proxies from holding it back', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const url = await listen(app)
  const release: Array<() => void> = []
  const sse = replyFixture('chat_completions.include_usage.sse')
  upstream.queue({
    fixture: 'chat_completions.include_usage.sse', split: 'events', before: () => new Promise<void>((resolve) => { release.push(resolve) }),
  })
  const message = await call(`${url}/v1/chat/completions`, { body: streamed }).reply
  t.match(
    message.headers,
    { 'cache-control': 'no-cache', 'x-accel-buffering': 'no', 'content-type': 'text/event-stream' },
    'before the first byte of the body'
  )
  const chunks: Buffer[] = []
  message.on('data', (chunk: Buffer) => chunks.push(chunk))
  // The next event goes out only once the one before it has arrived.
  let events = 0
  for (let ended = false; !ended;) {
    await waitFor(() => release.length > 0)
    release.shift()?.()
    events += 1
    ended = await Promise.race([
      once(message, 'end').then(() => true),
      waitFor(() => message.complete || (chunks.length >= events && release.length > 0)).then(() => message.complete),
    ])
  }
  const bytes = Buffer.concat(chunks)
  t.equal(sha256(bytes), sha256(sse))
  t.ok(events > 3, `${events} events`)
  t.match(await settled.next(), { outcome: 'ok', abortedBy: null, status: 200 })
})

t.test('a stream of Gemini\'s that is a JSON array has them, too, and an error of its upstream\'s has not', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const ask = async (status: number): Promise<unknown> => {
    upstream.queue({ status, headers: { 'content-type': 'application/json' }, body: '[{"candidates":[{"finishReason":"STOP"}]}]' })
    const { headers, statusCode } = await app.inject({
      method: 'POST',
      url: '/v1beta/models/m:streamGenerateContent',
      headers: { 'x-goog-api-key': secret },
      payload: { contents: [{ parts: [{ text: 'x' }] }] },
    })
    t.equal(statusCode, status)
    return headers['x-accel-buffering']
  }
  t.equal(await ask(200), 'no')
  t.equal(await ask(400), undefined)
})

t.test('requests without a body reach their upstream, and replies without one come back', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const get = await app.inject({ method: 'GET', url: '/v1/responses/resp_1?include=a', headers: { authorization: `Bearer ${secret}` } })
  t.equal(get.statusCode, 200)
  t.equal((await upstream.requests.next()).url, '/v1/responses/resp_1?include=a')
  upstream.queue({ status: 204, body: Buffer.alloc(0) })
  const gone = await app.inject({ method: 'DELETE', url: '/v1/responses/resp_1', headers: { authorization: `Bearer ${secret}` } })
  t.equal(gone.statusCode, 204)
  t.equal(gone.body, '')
  upstream.queue({ status: 503, body: { error: {} } })
  const busy = await app.inject({ method: 'GET', url: '/v1/models', headers: { authorization: `Bearer ${secret}` } })
  t.equal(busy.statusCode, 503)
  t.equal(upstream.seen.length, 3, 'nothing is tried again')
})

t.test('Expect: 100-continue is answered here and not sent on', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const url = await listen(app)
  const { request, reply } = call(`${url}/v1/chat/completions`, { headers: { expect: '100-continue' }, body: chat })
  let continued = false
  request.once('continue', () => { continued = true })
  t.equal((await reply).statusCode, 200)
  t.ok(continued)
  t.equal((await upstream.requests.next()).headers.expect, undefined)
})

t.test('early hints of an upstream are not its reply', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  upstream.respond = ({ raw }) => {
    raw.res.writeEarlyHints({ link: '</a>; rel=preload' })
    return null
  }
  const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
  t.equal(reply.statusCode, 200)
  t.equal(sha256(reply.rawPayload), sha256(replyFixture('chat_completions.json')))
})

t.test('an id may be longer than the parameters of the router', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: { ok: true } })
  const { app } = await startGateway(t, upstream.url)
  const id = `resp_${'a'.repeat(2_000)}`
  for (const [method, url] of [['GET', `/v1/responses/${id}`], ['DELETE', `/v1/responses/${id}`], ['POST', `/v1/responses/${id}/cancel`], [
    'GET', `/v1/responses/${id}/input_items?limit=1`,
  ]] as const) {
    t.match(
      await app.inject({ method, url, headers: { authorization: headers.authorization } }),
      { statusCode: 200 },
      `${method} ${url.slice(-12)}`
    )
    t.match(await upstream.requests.next(), { method, url })
  }
  const unknown = await app.inject({ url: `/v1/responses/${id}/else`, headers })
  t.match(unknown, { statusCode: 404 })
  t.match(unknown.json(), { error: { message: /^Unknown request URL: GET / } })
})
