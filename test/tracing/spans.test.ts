import { ProxyTracerProvider, SpanKind, SpanStatusCode, context } from '@opentelemetry/api'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { endCallSpan, startCallSpan } from '../../plugins/tracing/call-span.js'
import { tracing } from '../../plugins/tracing/index.js'
import { requestAttributes } from '../../plugins/tracing/request-attributes.js'
import { call, everyProtocol, listen, read, secret, startGateway, type Gateway } from '../helpers/gateway.js'
import { startUpstream, type Script, type Upstream } from '../helpers/upstream.js'
import { endpointOf, noTokens, settledRequest } from '../metrics/requests.js'
import { startTracing } from './sdk.js'
import { readUpstreams } from '../../plugins/upstreams/read-upstream.js'

const alone = { sdk: true, http: false, undici: false }

interface Running extends Gateway {
  readonly upstream: Upstream
  readonly url: string
  readonly spans: () => ReadableSpan[]
}

async function start (t: Test): Promise<Running> {
  const { finished } = startTracing(t, alone)
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, upstream.url, { groups: { all: { protocols: everyProtocol, upstream: 'main' } } })
  return { ...gateway, upstream, url: await listen(gateway.app), spans: finished }
}

async function chat ({ url, settled, upstream }: Running, body: object, script: Script = {}, key = secret): Promise<ModelCall> {
  upstream.queue(script)
  const payload = JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'a private question' }], ...body })
  const { reply } = call(`${url}/v1/chat/completions`, { body: payload, headers: { authorization: `Bearer ${key}` } })
  await read(await reply)
  return await settled.next()
}

t.test('a call that went well', async (t) => {
  const running = await start(t)
  const llm = await chat(running, { max_completion_tokens: 50, temperature: 0.5, n: 1 })
  const [span] = running.spans()
  t.equal(span?.name, 'chat gpt-5')
  t.equal(span?.kind, SpanKind.CLIENT)
  t.match(span?.instrumentationScope, { name: 'fastify-llm-gateway', version: /^\d+\.\d+\.\d+$/ })
  t.match(span?.attributes, {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-5',
    'gen_ai.request.max_tokens': 50,
    'gen_ai.request.temperature': 0.5,
    'server.address': '127.0.0.1',
    'server.port': running.upstream.port,
    'llm_gateway.protocol': 'chat_completions',
    'llm_gateway.group': 'all',
    'llm_gateway.request_id': llm.id,
    'llm_gateway.outcome': 'ok',
    'llm_gateway.upstream': 'main',
  })
  t.notOk('gen_ai.request.choice.count' in (span?.attributes ?? {}))
  t.notOk('gen_ai.request.stream' in (span?.attributes ?? {}))
  t.equal(span?.status.code, SpanStatusCode.UNSET)
  t.strictSame(llm.trace && { traceId: llm.trace.ids.traceId, spanId: llm.trace.ids.spanId }, {
    traceId: span?.spanContext().traceId, spanId: span?.spanContext().spanId,
  })
  t.notMatch(JSON.stringify([span?.attributes, span?.events]), /private|Hello/)
})

t.test('a stream ends its span at its last byte', async (t) => {
  const running = await start(t)
  await chat(running, { stream: true })
  const [span] = running.spans()
  t.match(span?.attributes, { 'gen_ai.request.stream': true, 'gen_ai.response.time_to_first_chunk': Number })
})

t.test('an error of the provider', async (t) => {
  const running = await start(t)
  await chat(running, {}, { status: 503, body: { error: { message: 'overloaded' } } })
  const [span] = running.spans()
  t.match(span?.attributes, { 'error.type': '503', 'llm_gateway.outcome': 'upstream_error' })
  t.match(span?.status, { code: SpanStatusCode.ERROR, message: '503' })
  t.equal(span?.name, 'chat', 'a name that was not answered is none for statistics')
})

t.test('an upstream that breaks off', async (t) => {
  const running = await start(t)
  await chat(running, {}, { cutAt: 'headers' })
  t.match(running.spans()[0]?.attributes, { 'error.type': 'upstream_reset' })
})

t.test('a caller that hangs up is no error', async (t) => {
  const running = await start(t)
  running.upstream.queue({ stallAt: 'headers' })
  const { request } = call(`${running.url}/v1/chat/completions`, {
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] }),
  })
  await running.upstream.requests.next()
  request.destroy()
  await running.settled.next()
  const [span] = running.spans()
  t.match(span?.attributes, { 'error.type': 'client_abort', 'llm_gateway.outcome': 'client_abort' })
  t.equal(span?.status.code, SpanStatusCode.UNSET)
})

t.test('a request that is refused makes no call', async (t) => {
  const running = await start(t)
  await chat(running, {}, {}, 'sk-unknown-0123456789')
  t.strictSame(running.spans(), [])
})

t.test('routes of the host make no span', async (t) => {
  const { finished } = startTracing(t, alone)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(tracing)
  app.get('/', async () => 'hello')
  await app.inject('/')
  t.strictSame(finished(), [])
})

t.test('an SDK that is registered after the app is ready', async (t) => {
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, upstream.url)
  const url = await listen(gateway.app)
  const { finished } = startTracing(t, alone)
  await chat({ ...gateway, upstream, url, spans: finished }, {})
  t.equal(finished().length, 1)
})

t.test('the provider of the option has the spans, whether or not another one is registered', async (t) => {
  const upstream = await startUpstream(t)
  for (const sdk of [false, true]) {
    const registered = startTracing(t, { ...alone, sdk })
    const { finished, provider } = startTracing(t, { ...alone, sdk: false })
    const gateway = await startGateway(t, upstream.url, { tracing: { tracerProvider: provider } })
    const url = await listen(gateway.app)
    t.not((await chat({ ...gateway, upstream, url, spans: finished }, {})).trace, null)
    t.strictSame([finished().length, registered.finished().length], [1, 0])
  }
})

t.test('a provider of the option that makes no spans', async (t) => {
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, upstream.url, { tracing: { tracerProvider: new ProxyTracerProvider() } })
  const url = await listen(gateway.app)
  t.equal((await chat({ ...gateway, upstream, url, spans: () => [] }, {})).trace, null)
})

t.test('the span has what the reply told of its model, its tokens and its end', async (t) => {
  const { finished, provider } = startTracing(t, alone)
  const tokens = { ...noTokens, input: 10, cache_read: 5, cache_write: 1, cache_write_5m: 2, cache_write_1h: 3, output: 20, reasoning: 7 }
  const llm = settledRequest({ usage: { tokens, responseModel: 'gpt-5-2026', responseId: 'resp_1', finishReason: 'stop' }, stream: true })
  endCallSpan(startCallSpan(provider.getTracer('x'), llm, [], context.active()), llm)
  t.match(finished()[0]?.attributes, {
    'gen_ai.response.id': 'resp_1',
    'gen_ai.response.model': 'gpt-5-2026',
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.usage.input_tokens': 21,
    'gen_ai.usage.output_tokens': 27,
    'gen_ai.usage.cache_read.input_tokens': 5,
    'gen_ai.usage.cache_creation.input_tokens': 6,
    'gen_ai.usage.reasoning.output_tokens': 7,
  })
})

t.test('only a plain model name is part of the name of a span', async (t) => {
  const { finished, provider } = startTracing(t, alone)
  const names: Array<[string | null, string]> = [['gpt-5', 'chat gpt-5'], [null, 'chat'], ['a b', 'chat'], ['x'.repeat(65), 'chat']]
  for (const [model] of names) {
    const llm = settledRequest({ model, auth: { group: null } })
    endCallSpan(startCallSpan(provider.getTracer('x'), llm, [], context.active()), llm)
  }
  t.strictSame(finished().map(({ name }) => name), names.map(([, name]) => name))
})

t.test('each attempt of a request is an event', async (t) => {
  const { finished, provider } = startTracing(t, alone)
  const llm = settledRequest()
  llm.routing.attempts = [
    { upstream: 'a', result: 'server_error', status: 503, durationMs: 3 }, { upstream: 'b', result: 'ok', status: 200, durationMs: 5 },
  ]
  endCallSpan(startCallSpan(provider.getTracer('x'), llm, [], context.active()), llm)
  t.match(finished()[0]?.events, [
    {
      name: 'llm_gateway.attempt',
      attributes: {
        'llm_gateway.upstream': 'a', 'llm_gateway.result': 'server_error', 'llm_gateway.status': 503, 'llm_gateway.duration_ms': 3,
      },
    },
    { name: 'llm_gateway.attempt', attributes: { 'llm_gateway.upstream': 'b', 'llm_gateway.result': 'ok' } },
  ])
})

t.test('an upstream without a port has that of its scheme', async (t) => {
  const { finished, provider } = startTracing(t, alone)
  for (const origin of ['https://a.example', 'http://b.example']) {
    const llm = settledRequest()
    const upstreams = [...readUpstreams({ x: { url: origin } }).values()]
    endCallSpan(startCallSpan(provider.getTracer('x'), llm, upstreams, context.active()), llm)
    endCallSpan(startCallSpan(provider.getTracer('x'), llm, upstreams, context.active()), llm)
  }
  t.strictSame(finished().map(({ attributes }) => attributes['server.port']), [443, 443, 80, 80])
})

t.test('one of several upstreams is no server of the call, and a long name of a model is cut', async (t) => {
  const { finished, provider } = startTracing(t, alone)
  const llm = settledRequest({ model: 'm'.repeat(200) })
  const upstreams = [...readUpstreams({ a: { url: 'https://a.example' }, b: { url: 'https://b.example' } }).values()]
  endCallSpan(startCallSpan(provider.getTracer('x'), llm, upstreams, context.active()), llm)
  const [span] = finished()
  t.equal(span?.attributes['gen_ai.request.model'], 'm'.repeat(128))
  t.notOk(Object.keys(span?.attributes ?? {}).some((name) => name.startsWith('server.')))
})

t.test('settings of a call, in each protocol\'s spelling', async (t) => {
  const gemini = endpointOf('generate_content.generateContent')
  const expected = {
    'gen_ai.request.max_tokens': 5,
    'gen_ai.request.top_p': 0.1,
    'gen_ai.request.top_k': 3,
    'gen_ai.request.seed': 7,
    'gen_ai.request.choice.count': 2,
  }
  t.strictSame(
    requestAttributes(endpointOf('chat_completions'), { max_completion_tokens: 5, top_p: 0.1, top_k: 3, seed: 7, n: 2 }), expected
  )
  t.strictSame(
    requestAttributes(gemini, { generationConfig: { maxOutputTokens: 5, topP: 0.1, topK: 3, seed: 7, candidateCount: 2 } }), expected
  )
  t.strictSame(
    requestAttributes(gemini, { generation_config: { max_output_tokens: 5, top_p: 0.1, top_k: 3, seed: 7, candidate_count: 2 } }), expected
  )
  for (const json of [undefined, null, 'text', [], { temperature: 'hot', seed: null, generationConfig: 5 }]) {
    for (const id of ['chat_completions', 'images', 'responses.retrieve']) t.strictSame(requestAttributes(endpointOf(id), json), {})
  }
})

t.test('a wrong option is an error that names it', async (t) => {
  await t.rejects(async () => await Fastify().register(tracing, { baggage: 'yes' as unknown as boolean }), {
    code: 'LLM_GATEWAY_OPTION', message: /tracing\.baggage/,
  })
  await t.rejects(async () => await Fastify().register(tracing, { tracerProvider: Object({}) }), {
    code: 'LLM_GATEWAY_OPTION', message: /tracing\.tracerProvider has no method getTracer/,
  })
})
