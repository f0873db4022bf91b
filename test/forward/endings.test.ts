/** How an exchange ends where it does not end well, or not at once. */
import { once } from 'node:events'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { call, everyProtocol, listen, read, secret, startGateway } from '../helpers/gateway.js'
import { replyFixture, sha256, startUpstream } from '../helpers/upstream.js'

const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const streamed = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'

async function waitFor (condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate)
}

t.test('the upstream is cancelled when the caller leaves before its headers', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const url = await listen(app)
  upstream.queue({ stallAt: 'headers' })
  const { request } = call(`${url}/v1/chat/completions`, { body: chat })
  const seen = await upstream.requests.next()
  request.destroy()
  t.equal(await seen.aborted, true)
  t.match(await settled.next(), {
    outcome: 'client_abort', abortedBy: 'client', usage: { missing: 'client_abort' }, upstreamReply: { status: 0 },
  })
})

t.test('the upstream is cancelled when the caller leaves mid-stream and nothing is drained', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { drain: { maxMs: 0 } } })
  const url = await listen(app)
  upstream.queue({ fixture: 'chat_completions.include_usage.sse', stallAt: 200 })
  const { request, reply } = call(`${url}/v1/chat/completions`, { body: streamed })
  const seen = await upstream.requests.next()
  await once(await reply, 'data')
  request.destroy()
  t.equal(await seen.aborted, true)
  t.match(await settled.next(), { outcome: 'client_abort', abortedBy: 'client' })
})

t.test('a caller that leaves at the last event of its stream had all of it, and one that leaves before has not', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { drain: { maxMs: 20 } } })
  const url = await listen(app)
  const anthropic = { authorization: '', 'x-api-key': secret, 'anthropic-version': '2023-06-01' }
  const cases = [
    ['/v1/chat/completions', 'chat_completions.include_usage.sse', streamed, {}, 'data: {'],
    ['/v1/responses', 'responses.sse', '{"model":"m","stream":true,"input":"hi"}', {}, 'event: response.completed'],
    ['/v1/messages', 'messages.sse', streamed.replace('"model"', '"max_tokens":9,"model"'), anthropic, 'event: message_stop'],
  ] as const
  for (const [path, fixture, body, own, last] of cases) {
    const { length } = replyFixture(fixture)
    const before = replyFixture(fixture).lastIndexOf(last)
    t.ok(before > 0, last)
    for (const [stallAt, outcome, abortedBy] of [[length, 'ok', null], [before, 'client_abort', 'client']] as const) {
      upstream.queue({ fixture, stallAt, headers: { 'content-type': 'text/event-stream' } })
      const { request, reply } = call(url + path, { headers: own, body })
      let bytes = 0
      for await (const chunk of await reply) {
        bytes += chunk.length
        if (bytes >= stallAt) break
      }
      request.destroy()
      t.match(await settled.next(), { outcome, abortedBy, status: 200 }, `${path} ${outcome}`)
    }
  }
})

t.test('an upstream that breaks off is told as an event of the protocol, or by cutting the socket, never as a clean end', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const url = await listen(app)
  const sse = replyFixture('chat_completions.sse').toString()
  const boundary = sse.indexOf('\n\n') + 2

  upstream.queue({ fixture: 'chat_completions.sse', cutAt: boundary })
  const told = await read(await call(`${url}/v1/chat/completions`, { body: streamed }).reply)
  t.equal(told.cut, false)
  t.equal(told.bytes.subarray(0, boundary).toString(), sse.slice(0, boundary))
  t.match(JSON.parse(told.bytes.subarray(boundary).toString().replace('data: ', '')), { error: { code: 'upstream_aborted' } })
  t.match(await settled.next(), { outcome: 'truncated', abortedBy: 'upstream', errorCode: 'upstream_aborted' })

  upstream.queue({ fixture: 'chat_completions.sse', cutAt: boundary + 5 })
  const cut = await read(await call(`${url}/v1/chat/completions`, { body: streamed }).reply)
  t.equal(cut.cut, true)
  t.equal(cut.bytes.toString(), sse.slice(0, boundary + 5))
  t.match(await settled.next(), { outcome: 'truncated', abortedBy: 'upstream' })

  const json = replyFixture('chat_completions.json')
  upstream.queue({ fixture: 'chat_completions.json', cutAt: 100 })
  const broken = await read(await call(`${url}/v1/chat/completions`, { body: chat }).reply)
  t.equal(broken.cut, true)
  t.equal(broken.bytes.toString(), json.subarray(0, 100).toString())
})

t.test('an upstream that cannot be reached, resets or stays silent is 502 or 504 without its address', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { headersTimeoutMs: 300, idleTimeoutMs: 300 } })
  const gone = await startGateway(t, 'http://127.0.0.1:1')

  async function outcome (app: typeof gone.app): Promise<[number, unknown]> {
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
    t.notMatch(reply.body, /127\.0\.0\.1|ECONN|localhost|undici/i)
    t.match(reply.headers, { 'content-type': /json/, 'x-request-id': /^[0-9a-f-]{36}$/ })
    return [reply.statusCode, reply.json().error.code]
  }
  t.strictSame(await outcome(gone.app), [502, 'upstream_unreachable'])
  t.match(await gone.settled.next(), { outcome: 'upstream_error' })
  upstream.queue({ cutAt: 'headers' })
  t.strictSame(await outcome(app), [502, 'upstream_reset'])
  upstream.queue({ stallAt: 'headers' })
  t.strictSame(await outcome(app), [504, 'upstream_timeout'])
  await settled.next()
  t.match(await settled.next(), { outcome: 'timeout' })
  t.equal(
    (await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })).statusCode, 200, 'the next request works'
  )
})

t.test('silence in the middle of a stream ends it as a timeout', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { idleTimeoutMs: 300 } })
  const url = await listen(app)
  const boundary = replyFixture('chat_completions.sse').toString().indexOf('\n\n') + 2
  upstream.queue({ fixture: 'chat_completions.sse', stallAt: boundary })
  const told = await read(await call(`${url}/v1/chat/completions`, { body: streamed }).reply)
  t.match(told.bytes.toString(), /"code":"upstream_timeout"/)
  t.match(await settled.next(), { outcome: 'timeout', abortedBy: 'upstream' })
})

const inPool = { pools: { pool: { members: ['main'] } }, groups: { all: { protocols: everyProtocol, upstream: 'pool' } } }

for (const [what, options] of [['the upstream', {}], ['a member of a pool', inPool]] as const) {
  t.test(`a slow reader holds ${what} back`, async (t) => {
    const upstream = await startUpstream(t)
    const { app } = await startGateway(t, upstream.url, options)
    const url = await listen(app)
    const megabyte = Buffer.alloc(1024 * 1024, 'x')
    const taken = { megabytes: 0 }
    upstream.respond = () => ({
      headers: { 'content-type': 'application/octet-stream' },
      body: Buffer.concat(Array.from({ length: 64 }, () => megabyte)),
      split: Array.from({ length: 63 }, (_, i) => (i + 1) * megabyte.length),
      before: (write) => { taken.megabytes = write },
    })
    const message = await call(`${url}/v1/chat/completions`, { body: chat }).reply
    message.pause()
    let seen = -1
    while (seen !== taken.megabytes || seen === 0) {
      seen = taken.megabytes
      await new Promise((resolve) => setTimeout(resolve, 150))
    }
    t.ok(seen < 48, `${seen} of 64 MB were taken from the upstream while the caller read nothing`)
    const { bytes, cut } = await read(message)
    t.equal(bytes.length, 64 * megabyte.length)
    t.equal(cut, false)
  })
}

t.test('a caller that leaves while its request waits for a connection never bothers the upstream', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { connections: 1 } })
  const url = await listen(app)
  const release: Array<() => void> = []
  upstream.queue({ fixture: 'chat_completions.json', before: () => new Promise<void>((resolve) => { release.push(resolve) }) })
  const first = call(`${url}/v1/chat/completions`, { body: chat })
  await upstream.requests.next()
  const begun: ModelCall[] = []
  gatewayOf(app).recorder = { ...gatewayOf(app).recorder, started: (llm) => begun.push(llm) }
  const second = call(`${url}/v1/chat/completions`, { body: chat })
  await waitFor(() => (begun[0]?.times.sentAt ?? 0) > 0)
  second.request.destroy()
  const unpaid = { outcome: 'client_abort', usage: { missing: null }, times: { sentAt: 0 } }
  t.match(await settled.next(), unpaid, 'nothing was sent that could be paid for')
  release.shift()?.()
  const pump = setInterval(() => release.shift()?.(), 1)
  // To its end, which the upstream may have before it where its caller has all of the reply: the next one waits behind it.
  t.teardown(() => clearInterval(pump))
  await read(await first.reply)
  t.match(await settled.next(), { outcome: 'ok' })
  // The one connection serves whoever waits in the order of their coming: after a third request the second would have been sent.
  const third = call(`${url}/v1/chat/completions`, { body: chat.replace('hi', 'the third') })
  await read(await third.reply)
  t.strictSame(upstream.seen.map(({ body }) => body.includes('the third')), [false, true])
})

t.test('bytes that metering held back arrive when the upstream ends without closing its last event', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const first = 'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'
  const last = 'data: {"choices":[]'
  const begun: ModelCall[] = []
  gatewayOf(app).recorder = { ...gatewayOf(app).recorder, started: (llm) => begun.push(llm) }
  // The second write goes out once the first has been read, so that it is a chunk of its own.
  const apart = {
    split: [first.length], before: (write: number) => write === 0 ? null : waitFor(() => (begun.at(-1)?.times.firstChunkAt ?? 0) > 0),
  }
  for (const pieces of [{}, apart]) {
    upstream.queue({ headers: { 'content-type': 'text/event-stream' }, body: first + last, ...pieces })
    const reply = await app.inject({
      method: 'POST',
      url: '/v1/chat/completions',
      headers,
      payload: '{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}',
    })
    t.equal(reply.body, first + last)
  }
})

t.test('closing the app lets a live stream end', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const url = await listen(app)
  let go = (): void => {}
  const closing = new Promise<void>((resolve) => { go = resolve })
  upstream.queue({ fixture: 'chat_completions.include_usage.sse', split: [300], before: (write) => write === 0 ? null : closing })
  const message = await call(`${url}/v1/chat/completions`, { headers: { connection: 'close' }, body: streamed }).reply
  await once(message, 'readable')
  const closed = app.close()
  setTimeout(go, 100)
  const { bytes, cut } = await read(message)
  t.equal(cut, false)
  t.equal(sha256(bytes), sha256(replyFixture('chat_completions.include_usage.sse')))
  await closed
})
