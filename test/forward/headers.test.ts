import { ROOT_CONTEXT } from '@opentelemetry/api'
import { OutgoingMessage } from 'node:http'
import t from 'tap'
import type { Call } from '../../plugins/core/upstream/upstream.js'
import { upstreamOf } from '../upstreams/request.js'
import type { Headers } from '../../plugins/forward/raw-headers.js'
import { replyHeaders } from '../../plugins/forward/reply-headers.js'
import { addOwnHeaders, cleanHeaders, ownRequestHeaders } from '../../plugins/forward/request-headers.js'
import { createResolve } from '../../plugins/core/url/resolve.js'
import { ModelCall } from '../../plugins/core/call/model-call.js'
import type { CallTrace } from '../../plugins/core/types.js'

function traced (headers: Record<string, string>): CallTrace {
  return { ids: { traceId: '', spanId: '' }, headers, context: ROOT_CONTEXT }
}

function request (): ModelCall {
  const resolved = createResolve('')('POST', '/v1/chat/completions', {})
  if (resolved?.kind !== 'endpoint') throw new Error('not resolved')
  return new ModelCall(resolved)
}

/** As a caller gets them, where the host has set none. */
function headersOf (headers: Headers, llm: ModelCall): Headers {
  return replyHeaders(headers, llm, new OutgoingMessage())
}

t.test('exactly one trace context goes upstream: ours where a span is active, the caller\'s otherwise', async (t) => {
  const caller = { traceparent: '00-caller', tracestate: 'a=b' }
  const llm = request()
  t.match(addOwnHeaders({ ...caller }, llm), caller)
  llm.trace = traced({ traceparent: '00-ours' })
  t.strictSame(addOwnHeaders({ ...caller }, llm), { traceparent: '00-ours' })
})

t.test('what is asked for with GET, and a key that caches do not know, is kept by none that its upstream does not tell to', async (t) => {
  const resolved = createResolve('')('GET', '/v1/responses/resp_1', {})
  if (resolved?.kind !== 'endpoint') throw new Error('not resolved')
  const llm = new ModelCall(resolved)
  t.equal(headersOf({}, llm)['cache-control'], 'no-store')
  t.equal(headersOf({ 'cache-control': 'max-age=5' }, llm)['cache-control'], 'max-age=5')
  t.equal(headersOf({}, request())['cache-control'], undefined)
})

t.test('a reply without hop-by-hop headers keeps all it has, and gets ids', async (t) => {
  const llm = request()
  t.strictSame(headersOf({ 'content-length': '3', 'x-a': ['1', '2'] }, llm), {
    'content-length': '3', 'x-a': ['1', '2'], 'x-request-id': llm.id, 'request-id': llm.id,
  })
  t.equal(llm.upstreamReply.requestId, null)
  t.match(
    headersOf({ 'access-control-allow-origin': '*' }, llm), { 'access-control-allow-origin': '*' },
    'nobody else has said who may read it'
  )
  t.match(headersOf({ 'request-id': 'up' }, llm), { 'x-request-id': 'up', 'request-id': 'up' })
  t.equal(llm.upstreamReply.requestId, 'up')
  llm.body.outgoing = Buffer.from('{}')
  t.equal(headersOf({ 'content-length': '3' }, llm)['content-length'], undefined)
})

t.test('a request of our own routes has each header once, ours in place of the caller\'s', async (t) => {
  const llm = request()
  const upstream = upstreamOf({ url: 'http://up' })
  const call: Call = { upstream, path: '', body: null, headers: [['authorization', 'Bearer sk-up']], headersTimeoutMs: null }
  const body = Buffer.from('{}')
  const caller = {
    ':path': '/',
    host: 'here',
    'content-length': '2',
    authorization: 'Bearer sk-caller',
    b3: 'theirs',
    traceparent: '00-caller',
    'set-cookie': ['a', 'b'],
    'x-a': '1',
  }
  const ours = ['host', 'up', 'content-type', 'application/json', 'authorization', 'Bearer sk-up']
  const sent = (headers: typeof caller & Record<string, string | string[]>): string[] => pairs(ownRequestHeaders(headers, llm, {
    ...call, body,
  }))
  t.strictSame(sent(caller), pairs([...ours, 'b3', 'theirs', 'traceparent', '00-caller', 'set-cookie', 'a', 'set-cookie', 'b', 'x-a', '1']))
  t.strictSame(sent({ ...caller, 'content-type': 'application/JSON', connection: 'X-A' }),
    pairs([...ours, 'b3', 'theirs', 'content-type', 'application/JSON', 'traceparent', '00-caller', 'set-cookie', 'a', 'set-cookie', 'b']
      .filter((_, at) => at !== 2 && at !== 3)))
  t.ok(sent({ ...caller, 'content-type': 'text/plain', connection: 'content-type' }).includes('content-type: application/json'))
  llm.trace = traced({ b3: 'ours' })
  t.strictSame(sent(caller), pairs([...ours, 'b3', 'ours', 'set-cookie', 'a', 'set-cookie', 'b', 'x-a', '1']))
  t.strictSame(sent({ ...caller, connection: 'x-a' }), pairs([...ours, 'b3', 'ours', 'set-cookie', 'a', 'set-cookie', 'b']))
  const hooked = { ...caller }
  Reflect.set(hooked, 'x-hook', 5)
  t.ok(sent(hooked).includes('x-hook: 5'), 'a number that a hook of the host put there')
  Reflect.set(hooked, 'x-hook', undefined)
  t.notMatch(sent(hooked).join(), /x-hook/, 'what a hook of the host took away')
  t.notOk(pairs(ownRequestHeaders(caller, llm, { ...call, body: null })).includes('content-type: application/json'))
})

t.test('ids that an upstream lists as its connection\'s own are not its reply\'s', async (t) => {
  const llm = request()
  t.match(headersOf({ connection: 'X-Request-Id, request-id', 'x-request-id': 'hop', 'request-id': 'hop' }, llm), {
    'x-request-id': llm.id, 'request-id': llm.id,
  })
  t.equal(llm.upstreamReply.requestId, null)
})

/** `name: value`, sorted: their order says nothing. */
function pairs (headers: readonly string[]): string[] {
  return headers.flatMap((name, at) => at % 2 === 0 ? [`${name}: ${headers[at + 1]}`] : []).sort()
}

t.test('what is remembered of names is bounded, and the same is dropped with it and without', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`x-made-up-${i}`, 'value']))
  const long = `x-forwarded-${'a'.repeat(200)}`
  const headers = { ...many, [long]: 'value', x_forwarded_for: '10.0.0.1', 'cf-ray': 'id', accept: '*/*' }
  for (let time = 0; time < 2; time++) t.same(cleanHeaders(headers), { ...many, accept: '*/*' })
})
