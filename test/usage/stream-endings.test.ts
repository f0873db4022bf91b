/** A stream that ends cleanly without its protocol's last event was cut, and its caller is told so, on every kind of mount. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { call, listen, read, secret } from '../helpers/gateway.js'
import { replyFixture, startUpstream, type Script, type Upstream } from '../helpers/upstream.js'
import { hosts } from './hosts.js'
import { eventsOf, requestFor, tapOn } from './meter-reply.js'

const headers = { 'x-api-key': secret, 'anthropic-version': '2023-06-01', 'x-goog-api-key': secret }
const chatBody = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'

interface Case {
  readonly endpoint: string
  readonly url: string
  readonly body: string
  readonly fixture: string
  /** Events at the end without which it is not whole. */
  readonly last: number
}

const cases: readonly Case[] = [
  { endpoint: 'chat_completions', url: '/v1/chat/completions', body: chatBody, fixture: 'chat_completions.include_usage.sse', last: 3 },
  { endpoint: 'responses', url: '/v1/responses', body: '{"model":"m","input":"hi","stream":true}', fixture: 'responses.sse', last: 1 },
  {
    endpoint: 'messages',
    url: '/v1/messages',
    body: '{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
    fixture: 'messages.sse',
    last: 1,
  },
  {
    endpoint: 'generate_content.streamGenerateContent',
    url: '/v1beta/models/m:streamGenerateContent?alt=sse',
    body: '{"contents":[{"parts":[{"text":"hi"}]}]}',
    fixture: 'generate_content.stream.sse',
    last: 1,
  },
  { endpoint: 'images', url: '/v1/images/generations', body: '{"model":"m","prompt":"x","stream":true}', fixture: 'images.sse', last: 1 },
]

/** What an event at the end of a cut stream looks like, in each protocol. */
const told: Readonly<Record<string, RegExp>> = {
  chat_completions: /data: \{[^\n]*"error":\{"message":"Connection error: the model provider broke off its reply\."[^\n]*\n\n$/,
  images: /data: \{"error":\{"message":"Connection error: the model provider broke off its reply\."[^\n]*\n\n$/,
  responses: /event: response\.failed\ndata: [^\n]*\n\n$/,
  messages: /event: error\ndata: [^\n]*broke off[^\n]*\n\n$/,
  'generate_content.streamGenerateContent': /data: \{"error":\{"code":502[^\n]*\n\n: [^\n]+$/,
}

function begun (fixture: string, without: number): Buffer {
  return Buffer.concat(eventsOf(replyFixture(fixture)).filter((event) => event.length > 0).slice(0, -without))
}

const asEvents = { headers: { 'content-type': 'text/event-stream' } }

for (const host of hosts) {
  t.test(`${host.name}: a caller that leaves at the last event had all of its stream`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const base = await listen(app)
    for (const { endpoint, url, body, fixture } of cases.filter(({ fixture }) => /^(?:chat|messages|responses)/.test(fixture))) {
      const { length } = replyFixture(fixture)
      upstream.queue({ ...asEvents, fixture, stallAt: length })
      const { request, reply } = call(base + url, { headers, body })
      let bytes = 0
      for await (const chunk of await reply) {
        bytes += chunk.length
        if (bytes >= length) break
      }
      request.destroy()
      t.match(await settled.next(), { outcome: 'ok', abortedBy: null, usage: { missing: null, tokens: {} } }, endpoint)
    }
  })

  /** The gateway's own transport tells in words what a host's mount can only tell by cutting the connection. */
  const inWords = host.drains

  t.test(`${host.name}: a stream without its last event`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const base = await listen(app)
    for (const { endpoint, url, body, fixture, last } of cases) {
      const bytes = begun(fixture, last)
      for (const script of [{}, { split: 'events' as const }, { length: true, split: 'events' as const }]) {
        upstream.queue({ ...asEvents, body: bytes, ...script })
        const reply = await call(base + url, { headers, body }).reply
        const got = await read(reply)
        t.equal(reply.statusCode, 200, endpoint)
        t.equal(got.cut, !inWords, `${endpoint} is cut`)
        if (inWords) {
          t.equal(got.bytes.subarray(0, bytes.length).toString(), bytes.toString(), `${endpoint}: all that came is passed on`)
          t.match(got.bytes.subarray(bytes.length).toString(), told[endpoint], endpoint)
        }
        const partial = endpoint === 'messages' || endpoint.startsWith('generate')
        t.match(await settled.next(), {
          outcome: 'truncated',
          abortedBy: 'upstream',
          errorCode: 'upstream_aborted',
          usage: { partial, missing: partial ? null : 'upstream_abort' },
        })
      }
      upstream.queue({ ...asEvents, fixture, split: 'events' })
      t.equal((await read(await call(base + url, { headers, body }).reply)).cut, false)
      t.match(await settled.next(), { outcome: 'ok', abortedBy: null, errorCode: null }, `${endpoint} is whole`)
    }
    t.equal(settled.size, 0)
  })

  t.test(`${host.name}: a stream whose enumerations are numbers, as clients may ask for, is whole`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const base = await listen(app)
    const array = readFileSync(new URL('../fixtures/usage/generate_content/numbers.json', import.meta.url), 'utf8')
    const documents: unknown[] = JSON.parse(array)
    const events = documents.map((document) => `data: ${JSON.stringify(document)}\r\n\r\n`).join('')
    for (const [query, body, type] of [
      ['$alt=json%3Benum-encoding%3Dint', array, 'application/json'],
      ['alt=sse&$alt=json;enum-encoding=int', events, 'text/event-stream'],
    ] as const) {
      upstream.queue({ headers: { 'content-type': type }, body })
      const url = `${base}/v1beta/models/m:streamGenerateContent?${query}`
      const { bytes, cut } = await read(await call(url, { headers, body: '{"contents":[{"parts":[{"text":"hi"}]}]}' }).reply)
      t.strictSame([bytes.toString(), cut], [body, false], query)
      t.match(await settled.next(), { outcome: 'ok', usage: { tokens: { input: 5, output: 2 }, partial: false } })
    }
  })

  t.test(`${host.name}: an empty stream, one of comments, one that ends within an event, and packed ones`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const base = await listen(app)
    const [chat] = cases
    if (chat === undefined) throw new Error('no case')
    const ask = async (script: Script): Promise<{ text: string, cut: boolean, status: number }> => {
      upstream.queue({ ...asEvents, ...script })
      const reply = await call(base + chat.url, { headers: { ...headers, 'accept-encoding': 'gzip, br' }, body: chat.body }).reply
      const { bytes, cut } = await read(reply)
      return { text: bytes.toString(), cut, status: Number(reply.statusCode) }
    }
    const bytes = begun(chat.fixture, chat.last)
    for (const body of ['', ': keepalive\n\n: keepalive\n\n']) {
      const { text, cut, status } = await ask({ body, split: 'events' })
      t.equal(cut || status >= 500, !inWords, 'where nothing was sent yet, the host tells it')
      if (inWords) t.match(text, told['chat_completions'])
      t.match(await settled.next(), { outcome: 'truncated' })
    }
    for (const script of [
      { body: bytes.subarray(0, -40), split: 'events' as const }, { encoding: 'gzip' as const, body: bytes, split: [20, 60] },
      { encoding: 'br' as const, body: bytes, split: [20] },
    ]) {
      const { cut } = await ask(script)
      t.equal(cut, true, JSON.stringify(script.encoding ?? 'within an event'))
      t.match(await settled.next(), { outcome: 'truncated', abortedBy: 'upstream' })
    }
    for (const encoding of ['gzip', 'br'] as const) {
      const { cut } = await ask({ encoding, body: replyFixture(chat.fixture), split: [20, 100] })
      t.equal(cut, false)
      t.match(await settled.next(), { outcome: 'ok' })
    }
    // Whole in one piece with its head, where nothing was passed on yet: an error of its own.
    const { text, cut, status } = await ask({ body: bytes.subarray(0, -40) })
    if (inWords) t.match([text, cut, status], [/"code":"upstream_aborted"/, false, 502])
    t.match(await settled.next(), { outcome: 'truncated' })
    t.equal(settled.size, 0)
  })

  t.test(`${host.name}: what is no event stream, and what failed, ends as it ends`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const base = await listen(app)
    const ask = async (script: Script, { url, body }: Pick<Case, 'url' | 'body'>): Promise<string> => {
      upstream.queue(script)
      const { bytes, cut } = await read(await call(base + url, { headers, body }).reply)
      t.equal(cut, false)
      return bytes.toString()
    }
    const [chat, responses, messages, gemini] = cases
    if (chat === undefined || responses === undefined || messages === undefined || gemini === undefined) throw new Error('no case')
    const json = '{"id":"x","choices":[{"message":{"content":"hi"}}]}'
    t.equal(await ask({ body: json }, chat), json)
    t.match(await settled.next(), { outcome: 'ok' })
    t.equal(await ask({ ...asEvents, body: json }, chat), json, 'JSON by another name')
    t.match(await settled.next(), { outcome: 'ok' })
    t.equal(
      await ask({ ...asEvents, status: 429, body: 'data: {"error":{"message":"slow"}}\n\n' }, chat),
      'data: {"error":{"message":"slow"}}\n\n'
    )
    t.match(await settled.next(), { outcome: 'client_error' })
    for (const [asked, body] of [
      [chat, 'data: {"error":{"message":"no"}}\n\n'],
      [
        responses,
        'event: response.failed\ndata: ' +
          '{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"no"}}}\n\n',
      ],
      [responses, 'event: error\ndata: {"type":"error","message":"no","code":"x"}\n\n'],
      [messages, 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"no"}}\n\n'],
      [gemini, 'data: {"error":{"code":503,"message":"no"}}\n\n'],
    ] as const) {
      t.equal(await ask({ ...asEvents, body }, asked), body)
      t.match(await settled.next(), { outcome: 'upstream_error', abortedBy: null })
    }
    const incomplete = 'event: response.incomplete\ndata: ' +
      '{"type":"response.incomplete","response":{"id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}\n\n'
    t.equal(await ask({ ...asEvents, body: incomplete }, responses), incomplete)
    t.match(await settled.next(), { outcome: 'ok' })
    const blocked = 'data: {"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4,"totalTokenCount":4}}\n\n'
    t.equal(await ask({ ...asEvents, body: blocked }, gemini), blocked, 'a prompt that is blocked has no candidate')
    t.match(await settled.next(), { outcome: 'ok' })
    t.equal(settled.size, 0)
  })

  t.test(`${host.name}: an array of documents without a reason to stop`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const base = await listen(app)
    const ask = async (script: Script): Promise<boolean> => {
      upstream.queue(script)
      const reply = await call(`${base}/v1beta/models/m:streamGenerateContent`, { headers, body: cases[3]?.body ?? '' }).reply
      return (await read(reply)).cut || reply.statusCode === 502
    }
    const whole = replyFixture('generate_content.stream.json')
    t.equal(await ask({ body: whole, split: [300] }), false)
    t.match(await settled.next(), { outcome: 'ok' })
    const first =
      '[{"candidates":[{"content":{"parts":[{"text":"Hel"}]},"index":0}],"usageMetadata":{"promptTokenCount":4,"totalTokenCount":4}}'
    for (const body of [`${first}]`, first, '[']) {
      t.equal(await ask({ body, split: [1] }), true, body.slice(-2))
      t.match(await settled.next(), { outcome: 'truncated', abortedBy: 'upstream' })
    }
    t.equal(settled.size, 0)
  })
}

const chunk = (choices: object[], more: object = {}): string => `data: ${JSON.stringify({ choices, ...more })}\n\n`
const piece = (index: number): object => ({ index, delta: { content: 'some words that make it long enough' }, finish_reason: null })
const end = (index: number): object => ({ index, delta: {}, finish_reason: 'stop' })
const usage = { usage: { prompt_tokens: 1, completion_tokens: 2 } }

const chats: ReadonlyArray<readonly [what: string, whole: boolean, events: string]> = [
  ['a reason, and no [DONE]', true, chunk([piece(0)]).repeat(4) + chunk([end(0)])],
  ['a reason, usage, and no [DONE]', true, chunk([piece(0)]).repeat(4) + chunk([end(0)]) + chunk([], usage)],
  ['a reason, and a comment after it', true, chunk([piece(0)]).repeat(4) + chunk([end(0)]) + ': bye\n\n'],
  ['a reason behind one more blank line', true, chunk([piece(0)]).repeat(4) + '\n' + chunk([end(0)]) + chunk([], usage)],
  ['usage after the reason in an event with an answer', true, chunk([piece(0)]).repeat(4) + chunk([end(0)]) + chunk([piece(0)], usage)],
  ['a reason in the last event, which no blank line ends', true, chunk([piece(0)]).repeat(4) + chunk([end(0)]).trimEnd()],
  [
    'a reason in an event that looks as if it had usage',
    true,
    chunk([piece(0)]).repeat(4) + chunk([{ index: 0, delta: { content: 'kens"' }, finish_reason: 'stop' }], { tokens: 1 }),
  ],
  ['usage with every event, and a reason', true, chunk([piece(0)], usage).repeat(4) + chunk([end(0)], usage)],
  ['[DONE] alone', true, chunk([piece(0)]).repeat(4) + 'data: [DONE]\n\n'],
  ['two answers, both with their reasons', true, (chunk([piece(0)]) + chunk([piece(1)])).repeat(3) + chunk([end(0)]) + chunk([end(1)])],
  [
    'two answers, and the reason of one',
    false,
    (chunk([piece(0)]) + chunk([piece(1)])).repeat(3) + chunk([end(0)]) + chunk([piece(1)]).repeat(2),
  ],
  ['two answers, and the reason of one at the very start', false, chunk([end(0)]) + chunk([piece(1)]).repeat(5)],
  ['no reason', false, chunk([piece(0)]).repeat(6)],
  ['a reason before an event that tells nothing', true, chunk([piece(0)]).repeat(4) + chunk([end(0)]) + chunk([])],
  ['a reason before two such events', true, chunk([piece(0)]).repeat(4) + chunk([end(0)]) + chunk([]) + 'data: {"object":"ping"}\n\n'],
  ['a reason and content after it, before an event that tells nothing', false, chunk([end(0)]) + chunk([piece(1)]).repeat(4) + chunk([])],
  ['a reason that is empty', false, chunk([piece(0)]).repeat(4) + chunk([{ index: 0, delta: {}, finish_reason: '' }])],
]

t.test('a chat is whole by its last event, however its bytes are cut', async (t) => {
  for (const [what, whole, text] of chats) {
    const bytes = Buffer.from(text)
    for (const pieces of [[bytes], eventsOf(bytes), [...bytes].map((byte) => Buffer.of(byte))]) {
      const { tap } = tapOn(requestFor('chat_completions'), asEvents.headers)
      for (const one of pieces) tap.push(one)
      tap.end()
      t.equal(tap.whole, whole, what)
    }
  }
})

t.test('a response that was cancelled in the background ends so', async (t) => {
  const bytes = readFileSync(new URL('../fixtures/usage/responses/cancelled.sse', import.meta.url))
  for (const pieces of [[bytes], eventsOf(bytes)]) {
    const { tap } = tapOn(requestFor('responses'), asEvents.headers)
    for (const one of pieces) tap.push(one)
    tap.end()
    t.equal(tap.whole, true)
  }
})

t.test('every stream without one more of its last events', async (t) => {
  for (const { endpoint, fixture, last } of cases) {
    const events = eventsOf(replyFixture(fixture)).filter((event) => event.length > 0)
    for (let kept = 0; kept <= events.length; kept += 1) {
      const { tap } = tapOn(requestFor(endpoint), asEvents.headers)
      for (const event of events.slice(0, kept)) tap.push(event)
      tap.end()
      t.equal(tap.whole, kept > events.length - last, `${fixture}: ${kept} of ${events.length}`)
    }
  }
})

t.test('a reply that promises no last event, and what has no body', async (t) => {
  const { tap } = tapOn(requestFor('embeddings'), asEvents.headers)
  tap.push(Buffer.from('data: {"object":"list"}\n\n'))
  tap.end()
  t.equal(tap.whole, true)
  const { tap: empty } = tapOn(requestFor('embeddings'), asEvents.headers)
  empty.end()
  t.equal(empty.whole, true)
  const upstream: Upstream = await startUpstream(t)
  const { app, settled } = await hosts[0].start(t, upstream.url)
  upstream.queue({ status: 204, ...asEvents })
  const reply = await app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { ...headers, authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    payload: chatBody,
  })
  t.equal(reply.statusCode, 204)
  t.match(await settled.next(), { outcome: 'ok' })
})
