/** However a request ends, it is settled once, after its usage is known, and says what became of it. */
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import type { ReplyUsage } from '../../plugins/core/call/call-parts.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { call, callersGone, listen, read, secret } from '../helpers/gateway.js'
import { replyFixture, Signal, startUpstream, usageOf, type Upstream } from '../helpers/upstream.js'
import { hosts, type HostOptions } from './hosts.js'
import { usageIn } from './meter-reply.js'

type Scope = Parameters<typeof startUpstream>[0] & { teardown: (close: () => unknown) => unknown }

const headers = { 'x-api-key': secret, 'anthropic-version': '2023-06-01', 'x-goog-api-key': secret }

const requests: Record<string, { url: string, body: string, protocol: string }> = {
  'chat_completions.include_usage.sse': {
    protocol: 'chat_completions',
    url: '/v1/chat/completions',
    body: '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}',
  },
  'chat_completions.json': {
    protocol: 'chat_completions', url: '/v1/chat/completions', body: '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
  },
  'responses.sse': { protocol: 'responses', url: '/v1/responses', body: '{"model":"m","input":"hi","stream":true}' },
  'messages.sse': {
    protocol: 'messages',
    url: '/v1/messages',
    body: '{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
  },
  'generate_content.stream.json': {
    protocol: 'generate_content', url: '/v1beta/models/m:streamGenerateContent', body: '{"contents":[{"parts":[{"text":"hi"}]}]}',
  },
}

const chatStream = 'chat_completions.include_usage.sse'

/** What is known when a request is settled; its state may not change any more. */
interface Settlement extends Pick<ModelCall, 'outcome' | 'abortedBy' | 'status' | 'holds'> {
  readonly usage: ReplyUsage['tokens']
  readonly usageMissing: ReplyUsage['missing']
  readonly llm: ModelCall
}

interface Stage {
  readonly upstream: Upstream
  readonly app: FastifyInstance
  readonly settlements: Signal<Settlement>
  readonly send: (fixture: string) => ReturnType<typeof call>
}

async function stage (
  t: Scope, host: typeof hosts[0], options: HostOptions = {}, more = (_app: FastifyInstance): void => {}
): Promise<Stage> {
  const upstream = await startUpstream(t)
  const { app } = await host.start(t, upstream.url, options)
  more(app)
  const settlements = new Signal<Settlement>()
  gatewayOf(app).settlement.onSettled((llm) => {
    const { usage: { tokens: usage, missing: usageMissing }, outcome, abortedBy, status, holds } = llm
    settlements.push({ usage, usageMissing, outcome, abortedBy, status, holds, llm })
  })
  const base = await listen(app)
  const send = (fixture: string): ReturnType<typeof call> => {
    const { url = '', body = '' } = requests[fixture] ?? {}
    return call(base + url, { headers, body })
  }
  return { upstream, app, settlements, send }
}

function middle (fixture: string, share: number): number {
  return Math.floor(replyFixture(fixture).length * share)
}

/** Offset before the event that brings the usage of a chat. */
const beforeUsage = replyFixture(chatStream).lastIndexOf('data: {')

for (const host of hosts) {
  t.test(`${host.name}: the upstream fails before its headers`, async (t) => {
    const { upstream, send, settlements } = await stage(t, host)
    for (const fixture of Object.keys(requests)) {
      upstream.queue({ cutAt: 'headers' })
      const reply = await send(fixture).reply
      await read(reply)
      t.ok(reply.statusCode !== undefined && reply.statusCode >= 500)
      t.match(await settlements.next(), { usage: null, usageMissing: null, status: reply.statusCode, holds: 0 })
    }
    t.equal(settlements.size, 0)
  })

  t.test(`${host.name}: the upstream breaks off at any byte`, async (t) => {
    const { upstream, send, settlements } = await stage(t, host)
    for (const [fixture, { protocol }] of Object.entries(requests)) {
      const bytes = replyFixture(fixture)
      for (const share of [0, 0.05, 0.3, 0.6, 0.9, 0.999]) {
        const cutAt = Math.floor(bytes.length * share)
        upstream.queue({ cutAt })
        await send(fixture).reply.then(read, () => {})
        const { usage, usageMissing, outcome, abortedBy } = await settlements.next()
        const expected = usageIn(protocol, bytes.subarray(0, cutAt))
        t.strictSame(usage, expected, `${fixture} cut at ${cutAt}`)
        // Where nothing has gone out, such a mount answers 502 in place of it.
        const ending = host.name === 'a mount that nobody adapted' && cutAt === 0 ? 'upstream_error' : 'truncated'
        t.strictSame([usageMissing, outcome, abortedBy], [expected === null ? 'upstream_abort' : null, ending, 'upstream'])
      }
    }
    t.equal(settlements.size, 0)
  })

  t.test(`${host.name}: the caller leaves before the headers`, async (t) => {
    const { upstream, send, settlements } = await stage(t, host)
    upstream.queue({ stallAt: 'headers' })
    const { request } = send(chatStream)
    await upstream.requests.next()
    request.destroy()
    t.match(await settlements.next(), { usage: null, usageMissing: 'client_abort', outcome: 'client_abort', status: 0, holds: 0 })
    t.equal(settlements.size, 0)
  })

  t.test(`${host.name}: the caller leaves between the last token and the usage`, async (t) => {
    const { upstream, app, send, settlements } = await stage(t, host)
    let leave = (): void => {}
    const left = new Promise<void>((resolve) => { leave = resolve })
    upstream.queue({ split: [beforeUsage], before: async (write) => { if (write === 1) await left } })
    const { request, reply } = send(chatStream)
    const stream = await reply
    stream.on('error', () => {})
    let bytes = 0
    for await (const chunk of stream) {
      bytes += chunk.length
      if (bytes >= beforeUsage) break
    }
    request.destroy()
    // Where nothing is drained the upstream is cancelled; where it is, its usage comes after the caller has gone.
    await (host.drains ? callersGone(app) : upstream.aborts.next())
    leave()
    const { usage, usageMissing, outcome } = await settlements.next()
    t.strictSame(usage, host.drains ? usageOf[chatStream]?.leaves : null)
    t.strictSame([usageMissing, outcome], [host.drains ? null : 'client_abort', 'client_abort'])
    t.equal(settlements.size, 0)
  })

  t.test(`${host.name}: the caller leaves, and the upstream does not end`, async (t) => {
    const { upstream, send, settlements } = await stage(t, host, { forward: { drain: { maxMs: 50 } } })
    for (const [fixture, { protocol }] of Object.entries(requests)) {
      const stallAt = middle(fixture, 0.7)
      upstream.queue({ stallAt })
      const { request, reply } = send(fixture)
      const stream = await reply
      stream.on('error', () => {})
      let bytes = 0
      for await (const chunk of stream) {
        bytes += chunk.length
        if (bytes >= stallAt) break
      }
      request.destroy()
      const { usage, usageMissing, outcome } = await settlements.next()
      const expected = usageIn(protocol, replyFixture(fixture).subarray(0, stallAt))
      t.strictSame(usage, expected, fixture)
      t.strictSame([usageMissing, outcome], [expected === null ? 'client_abort' : null, 'client_abort'])
      await upstream.aborts.next()
    }
    t.equal(settlements.size, 0)
  })

  t.test(`${host.name}: the caller leaves within a reply of failure, which misses no usage`, async (t) => {
    const { upstream, send, settlements } = await stage(t, host)
    upstream.queue({ status: 429, body: { error: { message: 'slow down' }, usage: { prompt_tokens: 3 } }, stallAt: 20 })
    const { request, reply } = send(chatStream)
    reply.catch(() => {})
    await upstream.requests.next()
    request.destroy()
    t.match(await settlements.next(), { usage: null, usageMissing: null, outcome: 'client_abort', holds: 0 })
    t.equal(settlements.size, 0)
  })

  t.test(`${host.name}: the upstream falls silent`, async (t) => {
    const options = { forward: { idleTimeoutMs: 100 }, mount: host.drains ? {} : { undici: { bodyTimeout: 100 } } }
    const { upstream, send, settlements } = await stage(t, host, options)
    upstream.queue({ stallAt: middle(chatStream, 0.5) })
    await read(await send(chatStream).reply)
    t.match(await settlements.next(), { usage: null, usageMissing: 'upstream_abort', outcome: 'timeout', abortedBy: 'upstream' })
    t.equal(settlements.size, 0)
  })

  t.test(`${host.name}: a hook of the host's puts something else in place of the reply`, async (t) => {
    const { upstream, app, settlements, send } = await stage(t, host, {}, (app) => {
      app.addHook('onSend', async (_request, _reply, payload) => payload instanceof Readable ? 'instead' : payload)
    })
    upstream.queue({ headers: { 'content-type': 'text/event-stream' }, body: Buffer.alloc(16 * 1024 * 1024, 'data: {"choices":[]}\n\n') })
    const { bytes, cut } = await read(await send(chatStream).reply)
    t.strictSame([bytes.toString(), cut], ['instead', false])
    t.match(await settlements.next(), { outcome: 'ok', usageMissing: 'client_abort', holds: 0 })
    t.ok(await upstream.aborts.next(), 'nobody holds the upstream')
    await app.close()
  })

  t.test(`${host.name}: the app closes while a reply is on its way`, async (t) => {
    const { upstream, app, send, settlements } = await stage(t, host)
    let go = (): void => {}
    const closing = new Promise<void>((resolve) => { go = resolve })
    upstream.queue({ split: [beforeUsage], before: async (write) => { if (write === 1) await closing } })
    const stream = await send(chatStream).reply
    const closed = app.close()
    go()
    const { bytes, cut } = await read(stream)
    await closed
    t.strictSame([bytes.length, cut], [replyFixture(chatStream).length, false])
    t.match(await settlements.next(), { usage: usageOf[chatStream]?.leaves, usageMissing: null, outcome: 'ok' })
    t.equal(settlements.size, 0)
  })

  t.test(`${host.name}: a reply that began with success and tells a failure is no success`, async (t) => {
    const { upstream, send, settlements } = await stage(t, host)
    const start = replyFixture('messages.sse').subarray(0, replyFixture('messages.sse').indexOf('\n\n', middle('messages.sse', 0.5)) + 2)
    const failure = Buffer.from('event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n')
    for (const split of [undefined, 'events'] as const) {
      upstream.queue({
        fixture: 'messages.sse',
        body: Buffer.concat([start, failure]),
        headers: { 'content-type': 'text/event-stream' },
        ...(split && { split }),
      })
      const { bytes, cut } = await read(await send('messages.sse').reply)
      t.strictSame([bytes.toString(), cut], [Buffer.concat([start, failure]).toString(), false])
      t.match(await settlements.next(), {
        usage: usageIn('messages', start),
        usageMissing: null,
        outcome: 'upstream_error',
        abortedBy: null,
        llm: { usage: { partial: true } },
      })
    }
    upstream.queue({ body: { error: { message: 'Provider returned error', code: 502 } } })
    await read(await send('chat_completions.json').reply)
    t.match(await settlements.next(), {
      usage: null, usageMissing: 'upstream_abort', outcome: 'upstream_error', abortedBy: null, status: 200,
    })
    t.equal(settlements.size, 0)
  })

  t.test(`${host.name}: a credential that the provider does not take is the caller's where it is the caller's own`, async (t) => {
    const { upstream, send, settlements } = await stage(t, host)
    upstream.queue({ status: 401, body: { error: { message: 'Incorrect API key provided' } } })
    t.equal((await send('chat_completions.json').reply).statusCode, 401)
    t.match(await settlements.next(), { outcome: host === hosts[3] ? 'client_error' : 'upstream_error', usage: null, usageMissing: null })
  })

  t.test(`${host.name}: a compressed reply is settled after its last byte was decoded`, async (t) => {
    const { upstream, send, settlements } = await stage(t, host)
    for (const encoding of ['gzip', 'br'] as const) {
      upstream.queue({ encoding })
      await read(await send('messages.sse').reply)
      t.match(await settlements.next(), { usage: usageOf['messages.sse']?.leaves, usageMissing: null, outcome: 'ok', holds: 0 })
      upstream.queue({ encoding, cutAt: 200 })
      await send('messages.sse').reply.then(read, () => {})
      t.match(await settlements.next(), { outcome: 'truncated', abortedBy: 'upstream', holds: 0 })
    }
    t.equal(settlements.size, 0)
  })
}
