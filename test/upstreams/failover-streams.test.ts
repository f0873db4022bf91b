import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { modelCallOf, type ModelCall } from '../../plugins/core/call/model-call.js'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { call, listen, read } from '../helpers/gateway.js'
import { replyFixture, Signal } from '../helpers/upstream.js'
import { ask, inOrder, seenBy, startPool } from './pool-gateway.js'

const chat = { model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] }
const event = (name: string, data: object): string => `event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}\n\n`
const stream = { 'content-type': 'text/event-stream' }
const preamble = event('response.created', { response: {} }) + event('response.in_progress', { response: {} })

t.test('a stream that fails before its first content is another member\'s stream, from its first byte', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'] } })
  const [first] = gateway.members
  const full = replyFixture('responses.sse').toString()
  for (const split of [undefined, 'bytes'] as const) {
    first?.queue({
      headers: stream,
      body: preamble + event('error', { code: 'server_is_overloaded' }) + event('response.failed', {}),
      ...split && { split },
    })
    const answer = await ask(gateway, { model: 'gpt-5', input: 'Hi', stream: true }, {}, '/v1/responses')
    t.equal(answer.body, full)
    t.match(await gateway.settled.next(), {
      routing: { attempts: [{ result: 'first_event', status: 200 }, { result: 'ok' }] }, usage: { tokens: {} }, outcome: 'ok',
    })
    t.equal(first?.seen.at(-1)?.headers['accept-encoding'], 'identity')
  }
  t.strictSame(seenBy(gateway), [2, 2])
  const twice = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'], attempts: 2 } })
  twice.members[1]?.queue({ headers: stream, body: 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n' })
  twice.members[0]?.queue({
    headers: stream, body: event('message_start', { message: {} }) + event('error', { error: { type: 'overloaded_error' } }),
  })
  const both = await ask(
    twice,
    { model: 'claude', max_tokens: 9, messages: [{ role: 'user', content: 'x' }], stream: true },
    { 'anthropic-version': '2023-06-01' },
    '/v1/messages'
  )
  t.match(both.body, /overloaded_error/, 'all failed: one of them, as it came')
  t.notMatch(both.body, /message_start[^]*message_start/)
})

t.test('once content was passed on nothing is sent again', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event', 'reset', 500] } })
  const [first] = gateway.members
  const content = event('response.output_text.delta', { delta: 'Hel' })
  const url = await listen(gateway.app)
  for (const script of [{ body: preamble + content + event('error', { code: 'server_error' }) }, {
    body: preamble + content, cutAt: preamble.length + content.length,
  }]) {
    first?.queue({ headers: stream, ...script })
    const { reply } = call(`${url}/v1/responses`, { body: JSON.stringify({ model: 'gpt-5', input: 'Hi', stream: true }) })
    const { bytes } = await read(await reply)
    t.ok(bytes.toString().startsWith(preamble + content))
  }
  t.strictSame(seenBy(gateway), [2, 0])
})

t.test('a stream that ends before its first content is another member\'s, unless its protocol is done with that', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'] } })
  const [first, second] = gateway.members
  const chunk = (delta: object, reason: string | null): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`
  const role = chunk({ role: 'assistant' }, null)
  const whole = `${role}${chunk({ content: 'Hi' }, 'stop')}data: [DONE]\n\n`
  const asked = { ...chat, stream: true }
  for (const body of ['', '\n', ': PROCESSING\n\n', role, `${role}data: {"error":{"message":"busy"}}`]) {
    first?.queue({ headers: stream, body })
    second?.queue({ headers: stream, body: whole })
    t.equal((await ask(gateway, asked)).body, whole, JSON.stringify(body))
    t.match(await gateway.settled.next(), { routing: { attempts: [{ result: 'first_event' }, { result: 'ok' }] }, outcome: 'ok' })
  }
  t.strictSame(seenBy(gateway), [5, 5])
  for (const body of ['data: [DONE]\n\n', 'data: [DONE]', whole.slice(0, -16), 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}']) {
    const own = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'] } })
    own.members[0]?.queue({ headers: stream, body })
    t.ok((await ask(own, asked)).body.startsWith(body), body)
    t.strictSame(seenBy(own), [1, 0])
  }
  const endless = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'] } })
  for (const path of ['/v1/embeddings', '/v1/responses/input_tokens']) {
    endless.members[0]?.queue({ headers: stream, body: '' })
    t.equal((await ask(endless, { model: 'm', input: 'Hi' }, {}, path)).body, '', path)
  }
  t.strictSame(seenBy(endless), [2, 0])
  for (const isAway of [false, true]) {
    const all = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'], attempts: 2 } })
    for (const member of all.members) member.queue({ headers: stream, body: role })
    if (isAway) await all.members[1]?.close()
    t.match((await ask(all, asked)).body, /role[^]*upstream_aborted/, 'all failed: one of them, and it is no whole one')
    const result = isAway ? 'connect' : 'reset'
    t.match(await all.settled.next(), { routing: { attempts: [{ result: 'first_event' }, { result }] }, outcome: 'truncated' })
  }
})

t.test('a response in the background is passed on at once: it goes on where it was begun, and is found by its id', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event', 'reset'] } })
  const url = await listen(gateway.app)
  for (const script of [{ body: preamble }, { body: preamble, cutAt: preamble.length }]) {
    gateway.members[0]?.queue({ headers: stream, ...script })
    const body = JSON.stringify({ model: 'gpt-5', input: 'Hi', stream: true, background: true })
    const { bytes } = await read(await call(`${url}/v1/responses`, { body }).reply)
    t.ok(bytes.toString().startsWith(preamble))
    t.match(await gateway.settled.next(), { routing: { attempts: [{ result: 'reset', status: 200 }] }, outcome: 'truncated' })
  }
  t.strictSame(seenBy(gateway), [2, 0])
})

t.test('a preamble that is too long is passed on', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'] } })
  const [first] = gateway.members
  const pings = event('ping', {}).repeat(64)
  const body = pings + event('error', { error: {} })
  first?.queue({ headers: stream, body, split: 'events' })
  const answer = await ask(
    gateway,
    { model: 'claude', max_tokens: 9, messages: [{ role: 'user', content: 'x' }], stream: true },
    { 'anthropic-version': '2023-06-01' },
    '/v1/messages'
  )
  t.ok(answer.body.startsWith(body))
  t.strictSame(seenBy(gateway), [1, 0])
})

t.test('a failure that is long or slow is passed on as it comes', async (t) => {
  // Nothing is looked for in it.
  const short = { credential: 'short' }
  const gateway = await startPool(t, { rules: inOrder, upstreams: [short, short] })
  const [first] = gateway.members
  const long = Buffer.alloc(400_000, 'x')
  first?.queue({ status: 503, headers: { 'content-type': 'text/plain' }, body: long })
  t.equal((await ask(gateway)).body, long.toString())
  first?.queue({ status: 503, body: 'ab', split: [1], before: async (write) => { if (write === 1) await wait(1_500) } })
  t.match(await ask(gateway), { status: 503, body: 'ab' })
  t.strictSame(seenBy(gateway), [2, 0])
})

t.test('a stream that failed comes whole where no other member can be reached', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'] } })
  const [first, second] = gateway.members
  await second?.close()
  const body = preamble + event('error', { code: 'server_is_overloaded' }) + event('response.failed', {})
  first?.queue({ headers: stream, body, split: 'events' })
  t.equal((await ask(gateway, { model: 'gpt-5', input: 'Hi', stream: true }, {}, '/v1/responses')).body, body)
})

t.test('a head that broke off with all members is one native error', async (t) => {
  const gateway = await startPool(t, { members: 3, rules: inOrder, pool: { retryOn: ['first_event'], attempts: 2 } })
  const [first, second] = gateway.members
  first?.queue({ headers: stream, body: preamble, cutAt: preamble.length })
  await second?.close()
  const url = await listen(gateway.app)
  const reply = await call(`${url}/v1/responses`, { body: JSON.stringify({ model: 'gpt-5', input: 'Hi', stream: true }) }).reply
  t.equal(reply.statusCode, 502)
  t.match(JSON.parse((await read(reply)).bytes.toString()), { error: { code: 'upstream_reset' } })
  t.match(await gateway.settled.next(), { routing: { attempts: [{ result: 'first_event' }, { result: 'connect' }] } })
})

t.test('a stream that failed and does not end holds nobody up', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'] } })
  const body = preamble + event('error', {})
  gateway.members[0]?.queue({ headers: stream, body, stallAt: body.length })
  const answer = await ask(gateway, { model: 'gpt-5', input: 'Hi', stream: true }, {}, '/v1/responses')
  t.equal(answer.body, replyFixture('responses.sse').toString())
})

t.test('early hints and replies that are no streams pass where heads are held', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'] } })
  const [first] = gateway.members
  if (first === undefined) throw new Error('none')
  first.respond = ({ raw }) => {
    raw.res.writeEarlyHints({ link: '</x>; rel=preload' })
    return { body: { id: 'x', choices: [] } }
  }
  t.match(await ask(gateway, { ...chat, stream: true }), { status: 200, body: '{"id":"x","choices":[]}' })
})

t.test('a caller that leaves a stream of a pool takes it along', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, gateway: { forward: { drain: { maxMs: 0 } } } })
  const [first] = gateway.members
  const content = event('response.output_text.delta', { delta: 'Hel' })
  first?.queue({ headers: stream, body: preamble + content, stallAt: preamble.length + content.length })
  const url = await listen(gateway.app)
  const { request, reply } = call(`${url}/v1/responses`, { body: JSON.stringify({ model: 'gpt-5', input: 'Hi', stream: true }) })
  await reply
  request.destroy()
  t.equal(await first?.seen[0]?.aborted, true)
  t.match(await gateway.settled.next(), {
    outcome: 'client_abort', routing: { attempts: [{ upstream: 'm0', result: 'left', status: 200 }] },
  })
})

t.test('the attempt of a stream that is read on for its usage is there when its request is settled', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  const told: unknown[] = []
  const calls = new Signal<ModelCall | null>()
  gateway.app.addHook('preHandler', async (request) => calls.push(modelCallOf(request)))
  gatewayOf(gateway.app).settlement.onSettled(({ routing }) => { told.push(routing.attempts?.map(({ result }) => result)) })
  const url = await listen(gateway.app)
  const full = replyFixture('responses.sse')
  for (const script of [{ body: full }, { body: full, cutAt: 600 }, { body: full.subarray(0, 600) }]) {
    const left = new Signal<void>()
    const before = async (write: number): Promise<void> => { if (write > 0) await left.next() }
    gateway.members[0]?.queue({ headers: stream, split: [300], before, ...script })
    const { request, reply } = call(`${url}/v1/responses`, { body: JSON.stringify({ model: 'gpt-5', input: 'Hi', stream: true }) })
    const llm = await calls.next()
    await reply
    request.destroy()
    while (llm?.abortedBy !== 'client') await wait(5)
    left.push()
    t.match(await gateway.settled.next(), { outcome: 'client_abort' })
  }
  t.strictSame(told, [['left'], ['left'], ['left']])
})

t.test('a caller that asks for no stream gets the compression that it asks for, also where heads are held', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'] } })
  await ask(gateway, chat, { 'accept-encoding': 'gzip' })
  t.equal(gateway.members[0]?.seen[0]?.headers['accept-encoding'], 'gzip')
})

t.test('a reply that is no event stream passes at once where heads are held', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'] } })
  gateway.members[0]?.queue({ headers: { 'content-type': 'application/json' }, body: '[{"a":1},{}]', stallAt: 8 })
  const { request, reply } = call(`${await listen(gateway.app)}/v1/chat/completions`, { body: JSON.stringify({ ...chat, stream: true }) })
  t.equal((await reply).statusCode, 200)
  request.destroy()
})

t.test('a caller that leaves a stream of a pool at its last event had all of it', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  const { length } = replyFixture('responses.sse')
  gateway.members[0]?.queue({ headers: stream, fixture: 'responses.sse', stallAt: length })
  const url = await listen(gateway.app)
  const { request, reply } = call(`${url}/v1/responses`, { body: JSON.stringify({ model: 'gpt-5', input: 'Hi', stream: true }) })
  let bytes = 0
  for await (const chunk of await reply) {
    bytes += chunk.length
    if (bytes >= length) break
  }
  request.destroy()
  t.match(await gateway.settled.next(), { outcome: 'ok', routing: { attempts: [{ upstream: 'm0', result: 'ok', status: 200 }] } })
})

t.test('a member whose every stream breaks off is left alone, and one whose callers leave is not', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  const [first] = gateway.members
  const url = await listen(gateway.app)
  const stream = JSON.stringify({ ...chat, stream: true })
  const ask = async (leaves: boolean): Promise<void> => {
    const { request, reply } = call(`${url}/v1/chat/completions`, { body: stream })
    const got = await reply
    if (leaves) {
      request.destroy()
      await gateway.settled.next()
      return
    }
    await read(got)
    await gateway.settled.next()
  }
  for (let i = 0; i < 8; i += 1) {
    first?.queue({ fixture: 'chat_completions.sse', split: 'events', stallAt: 300 })
    await ask(true)
  }
  t.match(gatewayOf(gateway.app).upstreamsStatus().upstreams, [{ state: 'up' }, { state: 'up' }])
  t.strictSame(seenBy(gateway), [8, 0])
  for (let i = 0; i < 6; i += 1) {
    first?.queue({ fixture: 'chat_completions.sse', split: 'events', cutAt: 300 })
    await ask(false)
  }
  t.match(gatewayOf(gateway.app).upstreamsStatus().upstreams, [{ state: 'out', reason: 'failures' }, { state: 'up' }])
  t.strictSame(seenBy(gateway), [13, 1])
})

t.test('a member whose every stream ends without its last event is left alone, packed or not', async (t) => {
  const begun = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${'word '.repeat(20)}"}}]}\n\n`.repeat(4))
  const type = { 'content-type': 'text/event-stream' }
  for (const script of [{ headers: type, body: begun }, { headers: { ...type, 'content-encoding': 'gzip' }, body: gzipSync(begun) }]) {
    const gateway = await startPool(t, { rules: inOrder })
    const url = await listen(gateway.app)
    const body = JSON.stringify({ ...chat, stream: true, stream_options: { include_usage: true } })
    for (let i = 0; i < 6; i += 1) {
      gateway.members[0]?.queue(script)
      await read(await call(`${url}/v1/chat/completions`, { body }).reply)
      const { outcome, routing } = await gateway.settled.next()
      t.equal(outcome, i < 5 ? 'truncated' : 'ok')
      t.match(routing.attempts, [{ upstream: i < 5 ? 'm0' : 'm1', result: i < 5 ? 'reset' : 'ok', status: 200 }])
    }
    t.match(gatewayOf(gateway.app).upstreamsStatus().upstreams, [{ state: 'out', reason: 'failures', active: 0 }, { state: 'up' }])
    t.strictSame(seenBy(gateway), [5, 1])
  }
})

t.test('a stream that goes on for long after it failed is cut', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['first_event'] } })
  const failed = event('error', { code: 'server_is_overloaded' })
  const megabyte = 1024 * 1024
  let megabytes = 0
  gateway.members[0]?.queue({
    headers: stream,
    body: failed + ' '.repeat(64 * megabyte),
    split: Array.from({ length: 64 }, (_, i) => failed.length + i * megabyte),
    before: async (write) => { megabytes = write },
  })
  const answer = await ask(gateway, { model: 'gpt-5', input: 'Hi', stream: true }, {}, '/v1/responses')
  t.equal(answer.body, replyFixture('responses.sse').toString())
  t.match(await gateway.settled.next(), { routing: { attempts: [{ result: 'first_event', status: 200 }, { result: 'ok' }] } })
  t.ok(megabytes < 60, `${megabytes} MB`)
})
