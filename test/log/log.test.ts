import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { ROOT_CONTEXT } from '@opentelemetry/api'
import Fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import llmGateway from '../../plugins/index.js'
import { log, type LogOptions } from '../../plugins/log/index.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { requestLine } from '../../plugins/log/line.js'
import { fillCall } from '../helpers/call-fields.js'
import { gatewayOptions, secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { noTokens, settledRequest } from '../metrics/requests.js'

type Line = Record<string, unknown>

/** An app whose model requests write to `next`. */
async function start (t: Test, options: LogOptions = {}): Promise<{ app: FastifyInstance, next: () => Promise<Line> }> {
  const stream = new PassThrough()
  const app = Fastify({ logger: { level: 'trace', stream }, logController: new LogController({ disableRequestLogging: true }) })
  t.teardown(() => app.close())
  const upstream = await startUpstream(t)
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), metrics: false, log: options })
  return { app, next: async () => JSON.parse(String((await once(stream, 'data'))[0])) }
}

function chat (app: FastifyInstance, key = secret) {
  return app.inject({
    method: 'POST',
    url: '/v1/v1/chat/completions',
    headers: { authorization: `Bearer ${key}` },
    payload: { model: 'gpt-5', messages: [{ role: 'user', content: 'a private question' }] },
  })
}

t.test('one line tells of one request, in the host\'s logger', async (t) => {
  const { app, next } = await start(t)
  const [line, reply] = await Promise.all([next(), chat(app)])
  t.equal(reply.statusCode, 200)
  t.match(line, {
    level: 30,
    msg: 'model request',
    llm: {
      id: /^[0-9a-f-]{36}$/,
      protocol: 'chat_completions',
      endpoint: 'chat_completions',
      operation: 'chat',
      provider: 'openai',
      group: 'all',
      key_id: 'caller',
      model: 'gpt-5',
      stream: false,
      path_repair: String,
      outcome: 'ok',
      status: 200,
      upstream: 'main',
      upstream_status: 200,
      duration_ms: Number,
      overhead_ms: Number,
    },
  })
  t.notMatch(JSON.stringify(line), /private|sk-caller/)
})

t.test('a line has the level that is wanted, of all that pino has', async (t) => {
  for (const [level, number] of Object.entries(pino.levels.values)) {
    const { app, next } = await start(t, { level } as LogOptions)
    const [line] = await Promise.all([next(), chat(app)])
    t.match(line, { level: number, msg: 'model request' }, level)
  }
})

t.test('in an app without other plugins of the gateway, too', async (t) => {
  const stream = new PassThrough()
  const app = Fastify({ logger: { stream }, logController: new LogController({ disableRequestLogging: true }) })
  t.teardown(() => app.close())
  await app.register(log)
  app.post('/v1/chat/completions', async () => ({}))
  const [[line]] = await Promise.all([once(stream, 'data'), app.inject({ method: 'POST', url: '/v1/chat/completions', payload: {} })])
  t.match(JSON.parse(String(line)), { level: 30, llm: { endpoint: 'chat_completions', status: 200 } })
})

t.test('a refused request has its line too', async (t) => {
  const { app, next } = await start(t, { level: 'warn' })
  const [line] = await Promise.all([next(), chat(app, 'sk-unknown-0123456789')])
  t.match(line, { level: 40, llm: { outcome: 'auth_error', status: 401, error: 'invalid_api_key' } })
  t.notMatch(JSON.stringify(line), 'sk-unknown')
})

t.test('a request whose path is refused is found by the id that its caller saw', async (t) => {
  const { app, next } = await start(t, { level: 'warn' })
  for (const [method, url, status, error] of [
    ['POST', '/v1/chat/completions/chat/completions', 404, 'doubled_path'],
    ['POST', '/v1/canary', 404, 'unknown_url'],
    ['POST', '/v1/can%00ary/x', 404, 'unknown_url'],
    ['GET', '/v1/chat/completions', 405, 'method_not_allowed'],
    ['POST', '/v1/chat%5ccompletions', 400, 'ambiguous_path'],
    ['POST', '/v1beta/models/canary:nothing?key=canary', 404, 'unknown_action'],
  ] as const) {
    const [line, reply] = await Promise.all([next(), app.inject({ method, url })])
    t.equal(reply.statusCode, status)
    const provider = url.startsWith('/v1beta') ? 'gcp.gemini' : 'openai'
    t.match(line, { level: 40, msg: 'refused path' })
    t.strictSame(line['llm'], { id: reply.headers['x-request-id'], provider, outcome: 'client_error', status, error })
    t.notMatch(JSON.stringify(line), 'canary')
  }
})

t.test('a host\'s own logger is used as it is', async (t) => {
  const stream = new PassThrough()
  const loggerInstance: FastifyBaseLogger = pino({ messageKey: 'text' }, stream)
  const app = Fastify({ loggerInstance, logController: new LogController({ disableRequestLogging: true }) })
  t.teardown(() => app.close())
  const upstream = await startUpstream(t)
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), metrics: false })
  const [[line]] = await Promise.all([once(stream, 'data'), chat(app)])
  t.match(JSON.parse(String(line)), { text: 'model request', llm: { outcome: 'ok' } })
})

const served = { tier: null, speed: null, region: null, counts: {}, tools: null, statedCost: null }

t.test('what does not apply is left out', async (t) => {
  const llm = settledRequest({
    auth: { group: null },
    routing: { upstream: null, attempts: [{ upstream: 'main', result: 'connect', status: 0, durationMs: 1 }] },
    upstreamReply: { status: 0 },
    usage: { served },
    model: null,
    at: { sent: 0 },
    outcome: 'auth_error',
    status: 401,
  })
  t.strictSame(Object.keys(JSON.parse(JSON.stringify(requestLine(llm)))), [
    'id', 'protocol', 'endpoint', 'operation', 'provider', 'stream', 'outcome', 'status', 'duration_ms',
  ])
})

t.test('the line has all that is known of a request, with long names cut', async (t) => {
  const llm = settledRequest({
    stream: true,
    model: 'm'.repeat(500),
    usage: { responseModel: 'gpt-5-2026', tokens: { ...noTokens, input: 3, reasoning: 4 }, missing: 'client_abort' },
    outcome: 'truncated',
    errorCode: 'upstream_aborted',
    abortedBy: 'upstream',
  })
  const attempts = [
    { upstream: 'a', result: 'connect', status: 0, durationMs: 1 }, { upstream: 'main', result: 'ok', status: 200, durationMs: 2 },
  ]
  fillCall(llm, {
    routing: { attempts, sentModel: 'theirs' },
    usage: { finishReason: 'stop', served: { ...served, tier: 'flex' } },
    callerLabels: { app: 'shop' },
    upstreamReply: { requestId: 'r'.repeat(500) },
    trace: { ids: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }, headers: null, context: ROOT_CONTEXT },
  })
  t.match(requestLine(llm), {
    model: 'm'.repeat(128),
    upstream_model: 'theirs',
    attempts: [{ upstream: 'a', result: 'connect', status: undefined, duration_ms: 1 }, {
      upstream: 'main', result: 'ok', status: 200, duration_ms: 2,
    }],
    response_model: 'gpt-5-2026',
    ttfc_ms: 400,
    overhead_ms: 2,
    duration_ms: 1000,
    usage: { input: 3, reasoning: 4, output: 0 },
    usage_missing: 'client_abort',
    error: 'upstream_aborted',
    aborted_by: 'upstream',
    finish_reason: 'stop',
    service_tier: 'flex',
    labels: { app: 'shop' },
    upstream_request_id: 'r'.repeat(128),
    trace_id: 'a'.repeat(32),
    span_id: 'b'.repeat(16),
  })
})

t.test('a wrong level is an error that names the option', async (t) => {
  for (const level of ['loud', 3]) {
    await t.rejects(async () => await Fastify().register(log, { level } as LogOptions), {
      code: 'LLM_GATEWAY_OPTION', message: /log\.level/,
    })
  }
})

t.test('an option that it does not have is an error', async (t) => {
  await t.rejects(async () => await Fastify().register(log, { levels: 'info' } as LogOptions), {
    code: 'LLM_GATEWAY_OPTION', message: /log\.levels/,
  })
})

t.test('a line tells what a request cost, and where that has no price', async (t) => {
  const cost = {
    amount: '0.5', billionths: 500_000_000, currency: 'USD', parts: [], unpriced: false, entry: null, by: null, price: null, factor: '1',
  }
  const costing = (told: object): ModelCall => Object.assign(settledRequest(), { cost: { ...told, exact: told } })
  t.match(requestLine(costing(cost)), { cost: '0.5', currency: 'USD', unpriced: undefined })
  t.match(requestLine(costing({ ...cost, amount: null, unpriced: true })), {
    cost: undefined, currency: 'USD', unpriced: true,
  })
})
