import t from 'tap'
import { DrainBudget, drainDefaults } from '../../plugins/forward/drain.js'
import { EventBoundary } from '../../plugins/forward/event-boundary.js'
import { checkTransport, withTransportDefaults } from '../../plugins/forward/options.js'
import { proxyOptions } from '../../plugins/forward/proxy-options.js'
import { isEventStream } from '../../plugins/core/reply/event-stream.js'
import { isPage } from '../../plugins/forward/reply-headers.js'
import { routeAddresses } from '../../plugins/forward/routes.js'

t.test('only whole events are a place for an event of ours', async (t) => {
  const cases: [text: string, boundary: boolean][] = [
    ['', true], ['data: 1\n\n', true], ['data: 1\r\n\r\n', true], ['data: 1\r\r', true], ['data: 1\n', false], ['data: 1', false],
    ['\r\n', false],
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
  t.not(budget.begin(() => {}), null)
  // The one below is called later.
  new DrainBudget({ ...drainDefaults, maxMs: 1 }).begin(() => t.fail('it ended before'))?.end()
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
  for (const url of [
    'POST /llm/v1/chat/completions', 'POST /llm/v1beta/models/*', 'GET /llm/v1/models', 'GET /llm/v1/models/*', 'GET /llm/v1beta/models/*',
    'DELETE /llm/v1/responses/*',
  ]) {
    t.ok(urls.includes(url), url)
  }
})

t.test('wrong options name themselves', async (t) => {
  t.throws(() => checkTransport('forward', { connections: 0 }), { code: 'LLM_GATEWAY_OPTION', message: /forward\.connections/ })
  t.throws(() => checkTransport('forward', { drain: { maxMs: -1 } }), { message: /forward\.drain\.maxMs/ })
  for (const unknown of ['refused', 'Forward', null]) {
    t.throws(
      () => proxyOptions(JSON.parse(JSON.stringify({ unknown }))),
      { code: 'LLM_GATEWAY_OPTION', message: /proxyOptions\.unknown must be refuse or forward/ },
      'fails closed'
    )
  }
  t.throws(() => checkTransport('proxyOptions', { headersTimeoutMs: 1.5 }), { message: /proxyOptions\.headersTimeoutMs/ })
  t.throws(() => checkTransport('proxyOptions', { drain: { maxBytes: 0.5 } }), { message: /proxyOptions\.drain\.maxBytes/ })
  const longest = { queueMs: 2 ** 31 - 1, idleTimeoutMs: 2 ** 31 - 1, drain: { maxMs: 2 ** 31 - 1 } }
  t.match(withTransportDefaults(longest), longest)
  for (const [name, options] of [
    ['queueMs', { queueMs: 2 ** 31 }], ['idleTimeoutMs', { idleTimeoutMs: 2 ** 31 }], ['drain.maxMs', { drain: { maxMs: 2 ** 31 } }],
  ] as const) {
    const message = `option proxyOptions.${name} must be a whole number of ${name === 'queueMs' ? 1 : 0} to 2147483647`
    t.throws(() => checkTransport('proxyOptions', options), { code: 'LLM_GATEWAY_OPTION', message }, 'a timer would end at once')
  }
  const unset: object = { maxMs: undefined, maxBytes: undefined, maxConcurrent: undefined }
  const { drain } = withTransportDefaults({ drain: { ...unset } })
  t.strictSame(drain, drainDefaults, 'undefined, as of a variable that is not set, is not given')
})
