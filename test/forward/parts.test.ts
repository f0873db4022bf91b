import t from 'tap'
import { DrainBudget, drainDefaults } from '../../plugins/forward/drain.js'
import { EventBoundary } from '../../plugins/forward/event-boundary.js'
import { checkForwardOptions, readTransport } from '../../plugins/forward/options.js'
import { proxyOptions } from '../../plugins/forward/proxy-options.js'
import { isEventStream } from '../../plugins/core/event-stream.js'
import { isPage } from '../../plugins/forward/reply-headers.js'
import { routeAddresses } from '../../plugins/forward/routes.js'
import { readUpstreams, upstreamFor, type UpstreamOptions } from '../../plugins/forward/upstreams.js'
import { createResolve } from '../../plugins/core/url/resolve.js'
import { ModelCall } from '../../plugins/core/model-call.js'
import type { Group } from '../../plugins/core/types.js'

t.test('an upstream address is read once, without the version that callers bring along', async (t) => {
  const cases: [url: string, origin: string, basePath: string][] = [
    ['https://api.example', 'https://api.example', ''],
    ['https://api.example/', 'https://api.example', ''],
    ['https://api.example/v1', 'https://api.example', ''],
    ['https://api.example/v1beta/', 'https://api.example', ''],
    ['http://127.0.0.1:11434/api/v1', 'http://127.0.0.1:11434', '/api'],
    ['https://api.example/openai/v1/', 'https://api.example', '/openai'],
    ['https://api.example/v10', 'https://api.example', '/v10'],
  ]
  for (const [url, origin, basePath] of cases) {
    t.match(readUpstreams({ u: { url } }).get('u'), { name: 'u', origin, basePath, credential: null, forwards: false }, url)
  }
  t.match(readUpstreams({ u: { url: 'http://h', credential: 'forward' } }).get('u'), { credential: null, forwards: true })
  t.match(readUpstreams({ u: { url: 'http://h', credential: 'secret' } }).get('u'), { credential: 'secret', forwards: false })
})

t.test('a wrong upstream is refused at start, by the name of its field and without its value', async (t) => {
  const cases: [options: UpstreamOptions, message: RegExp][] = [
    [{ url: 'nothing' }, /upstreams\.u\.url is not an address such as/],
    [{ url: 'ftp://h' }, /upstreams\.u\.url must begin with https:\/\/ or http:\/\//],
    [{ url: 'http://user@h' }, /must not hold a name or password/],
    [{ url: 'http://h/?key=s3cret' }, /must not hold a query or fragment/],
    [{ url: 'https://h/v1/chat/completions' }, /upstreams\.u\.url must be the base address, without the path of an endpoint/],
    [{ url: 'http://h', credential: '' }, /upstreams\.u\.credential must be visible/],
    [{ url: 'http://h', credential: undefined }, /upstreams\.u\.credential must be visible/],
    [Object({ url: 'http://h', credentials: 'misspelled' }), /upstreams\.u\.credentials is not known/],
    [{ url: 'http://h', credential: 's3cret with blank' }, /upstreams\.u\.credential must be visible/],
  ]
  for (const [options, message] of cases) {
    t.throws(() => readUpstreams({ u: options }), { code: 'LLM_GATEWAY_OPTION', message })
    t.throws(() => readUpstreams({ u: options }), { message: /^(?!.*s3cret)/ })
  }
})

t.test('a request goes to the upstream of its group, or to the only one there is', async (t) => {
  const one = readUpstreams({ a: { url: 'http://a' } })
  const two = readUpstreams({ a: { url: 'http://a' }, b: { url: 'http://b' } })
  const resolve = createResolve('')
  function request (url: string, method: string, upstream: Group['upstream'] | undefined): ModelCall {
    const resolved = resolve(method, url, {})
    if (resolved?.kind !== 'endpoint') throw new Error(url)
    const llm = new ModelCall(resolved)
    if (upstream !== undefined) llm.group = { id: 'g', protocols: new Set(), thirdParty: true, upstream, models: null, limits: {}, onStoreFailure: 'closed' }
    return llm
  }
  const name = (llm: ModelCall, upstreams: typeof one): string | undefined => upstreamFor(llm, upstreams)?.name
  t.equal(name(request('/v1/responses', 'POST', undefined), one), 'a')
  t.equal(name(request('/v1/responses', 'POST', null), two), undefined, 'undecided')
  t.equal(name(request('/v1/responses', 'POST', null), new Map()), undefined)
  t.equal(name(request('/v1/responses', 'POST', 'b'), two), 'b')
  t.equal(name(request('/v1/responses', 'POST', 'c'), two), undefined)
  const map = { responses: 'b', embeddings: 'a' }
  t.equal(name(request('/v1/responses', 'POST', map), two), 'b')
  t.equal(name(request('/v1/chat/completions', 'POST', map), two), undefined)
  t.equal(name(request('/v1/models', 'GET', map), two), 'b', 'the model list of the first protocol that has an upstream')
})

t.test('only whole events are a place for an event of ours', async (t) => {
  const cases: [text: string, boundary: boolean][] = [
    ['', true], ['data: 1\n\n', true], ['data: 1\r\n\r\n', true], ['data: 1\r\r', true], ['data: 1\n', false], ['data: 1', false], ['\r\n', false],
  ]
  for (const [text, boundary] of cases) {
    const whole = new EventBoundary()
    const bytes = new EventBoundary()
    whole.push(Buffer.from(text))
    for (const byte of Buffer.from(text)) bytes.push(Buffer.from([byte]))
    t.equal(whole.atBoundary, boundary, JSON.stringify(text))
    t.equal(bytes.atBoundary, boundary, `${JSON.stringify(text)} byte by byte`)
  }
})

t.test('drains have places, and none where they are switched off', async (t) => {
  const budget = new DrainBudget({ ...drainDefaults, maxConcurrent: 1, maxBytes: 10 })
  const begin = (options = {}): unknown => new DrainBudget({ ...drainDefaults, ...options }).begin(() => {})
  const drain = budget.begin(() => {})
  t.equal(drain?.goesOn(9), true)
  t.equal(drain?.goesOn(1), false, 'all that is read')
  t.equal(budget.begin(() => {}), null)
  drain?.end()
  budget.begin(() => t.fail('it ended before'))?.end()
  t.equal(begin({ maxMs: 0 }), null)
  t.equal(begin({ maxBytes: 0 }), null)
  await new Promise<void>((resolve) => {
    const holds = setInterval(() => {}, 1_000)
    new DrainBudget({ ...drainDefaults, maxMs: 1 }).begin(() => {
      clearInterval(holds)
      resolve()
    })
  })
})

t.test('media types are read in any case and with parameters', async (t) => {
  t.ok(isEventStream({ 'content-type': 'Text/Event-Stream; charset=utf-8' }))
  t.notOk(isEventStream({ 'content-type': 'text/event-streams' }))
  t.notOk(isEventStream({}))
  t.ok(isPage(502, { 'content-type': 'text/html' }))
  t.notOk(isPage(200, { 'content-type': 'text/html' }))
  t.notOk(isPage(502, { 'content-type': 'application/json' }))
})

t.test('every endpoint has one route, below the prefix', async (t) => {
  const urls = routeAddresses('/llm').map(({ method, url }) => `${method} ${url}`)
  t.equal(new Set(urls).size, urls.length)
  for (const url of ['POST /llm/v1/chat/completions', 'POST /llm/v1beta/models/*', 'GET /llm/v1/models', 'GET /llm/v1/models/*', 'GET /llm/v1beta/models/*', 'DELETE /llm/v1/responses/*']) {
    t.ok(urls.includes(url), url)
  }
})

t.test('wrong options name themselves', async (t) => {
  t.throws(() => checkForwardOptions({ connections: 0 }), { code: 'LLM_GATEWAY_OPTION', message: /forward\.connections/ })
  t.throws(() => checkForwardOptions({ drain: { maxMs: -1 } }), { message: /forward\.drain\.maxMs/ })
  for (const unknown of ['refused', 'Forward', null]) {
    t.throws(() => proxyOptions(JSON.parse(JSON.stringify({ unknown }))), { code: 'LLM_GATEWAY_OPTION', message: /proxyOptions\.unknown must be refuse or forward/ }, 'fails closed')
  }
  t.throws(() => readTransport({ headersTimeoutMs: 1.5 }), { message: /proxyOptions\.headersTimeoutMs/ })
  t.throws(() => readTransport({ drain: { maxBytes: 0.5 } }), { message: /proxyOptions\.drain\.maxBytes/ })
  const unset: object = { maxMs: undefined, maxBytes: undefined, maxConcurrent: undefined }
  t.strictSame(readTransport({ drain: { ...unset } }).drain, drainDefaults, 'undefined, as of a variable that is not set, is not given')
})
