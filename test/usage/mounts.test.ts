import t from 'tap'
import { call, listen, read, secret } from '../helpers/gateway.js'
import { replyFixture, sha256, startUpstream, usageOf } from '../helpers/upstream.js'
import { hosts } from './hosts.js'

const bearer = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
const chat = '{"model":"m", "big":12345678901234567890,"messages":[{"role":"user","content":"hi"}]}'
const streamedChat = '{"model":"m", "big":12345678901234567890,"stream":true,"messages":[{"role":"user","content":"hi"}]}'
const contents = '{"contents":[{"parts":[{"text":"hi"}]}]}'
const message = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
const anthropic = { 'x-api-key': secret, 'anthropic-version': '2023-06-01', 'content-type': 'application/json' }
const gemini = { 'x-goog-api-key': secret, 'content-type': 'application/json' }

interface Case {
  readonly fixture: string
  readonly url: string
  readonly headers: Record<string, string>
  readonly body: string
  /** What the caller gets, where it is not the fixture. */
  readonly gets?: string
}

const cases: readonly Case[] = [
  { fixture: 'chat_completions.json', url: '/v1/chat/completions', headers: bearer, body: chat },
  {
    fixture: 'chat_completions.include_usage.sse',
    url: '/v1/chat/completions',
    headers: bearer,
    body: '{"stream_options":{"include_usage":true},' + streamedChat.slice(1),
  },
  {
    fixture: 'chat_completions.include_usage.sse',
    url: '/v1/chat/completions',
    headers: bearer,
    body: streamedChat,
    gets: withoutExtra('chat_completions.include_usage.sse'),
  },
  { fixture: 'responses.json', url: '/v1/responses', headers: bearer, body: '{"model":"m","input":"hi"}' },
  { fixture: 'responses.sse', url: '/v1/responses', headers: bearer, body: '{"model":"m","input":"hi","stream":true}' },
  { fixture: 'responses.compact.json', url: '/v1/responses/compact', headers: bearer, body: '{"model":"m","input":"hi"}' },
  { fixture: 'images.json', url: '/v1/images/generations', headers: bearer, body: '{"model":"m","prompt":"hi"}' },
  { fixture: 'images.sse', url: '/v1/images/generations', headers: bearer, body: '{"model":"m","prompt":"hi","stream":true}' },
  { fixture: 'embeddings.json', url: '/v1/embeddings', headers: bearer, body: '{"model":"m","input":"hi"}' },
  { fixture: 'messages.json', url: '/v1/messages', headers: anthropic, body: JSON.stringify(message) },
  { fixture: 'messages.sse', url: '/v1/messages', headers: anthropic, body: JSON.stringify({ ...message, stream: true }) },
  { fixture: 'generate_content.json', url: '/v1beta/models/m:generateContent', headers: gemini, body: contents },
  { fixture: 'generate_content.stream.sse', url: '/v1beta/models/m:streamGenerateContent?alt=sse', headers: gemini, body: contents },
  { fixture: 'generate_content.stream.json', url: '/v1beta/models/m:streamGenerateContent', headers: gemini, body: contents },
]

function withoutExtra (fixture: string): string {
  return replyFixture(fixture).toString().split('\n\n').filter((event) => !event.includes('"choices":[]')).join('\n\n')
}

for (const host of hosts) {
  t.test(`${host.name}: every protocol, however its bytes come`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const base = await listen(app)
    for (const { fixture, url, headers, body, gets } of cases) {
      for (const split of [undefined, 'events', 'bytes'] as const) {
        if (split === 'bytes' && replyFixture(fixture).length > 1_000) continue
        upstream.queue(split === undefined ? {} : { split })
        const { bytes, cut } = await read(await call(base + url, { headers, body }).reply)
        const llm = await settled.next()
        t.equal(cut, false)
        t.strictSame(llm.usage.tokens, usageOf[fixture]?.leaves, `${fixture} ${split ?? 'whole'}`)
        t.equal(sha256(bytes), sha256(gets ?? replyFixture(fixture)))
        t.match(llm, { usage: { missing: null, inconsistent: false }, outcome: 'ok', upstreamReply: { status: 200, tapped: true } })
        t.ok(llm.times.headersAt > 0 && llm.times.firstChunkAt >= llm.times.headersAt && llm.times.lastChunkAt >= llm.times.firstChunkAt)
      }
    }
    t.equal(settled.size, 0, 'settled once each')
  })

  t.test(`${host.name}: compressed replies pass as they are`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const base = await listen(app)
    for (const encoding of ['gzip', 'deflate', 'br'] as const) {
      for (const { fixture, url, headers, body } of cases.filter(({ gets }) => gets === undefined)) {
        upstream.queue({ encoding })
        const reply = await call(base + url, { headers: { ...headers, 'accept-encoding': 'gzip, deflate, br' }, body }).reply
        t.equal(reply.headers['content-encoding'], encoding)
        await read(reply)
        t.strictSame((await settled.next()).usage.tokens, usageOf[fixture]?.leaves, `${fixture} ${encoding}`)
      }
    }
  })

  t.test(`${host.name}: usage is asked for in the bytes as they came, or not at all`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const base = await listen(app)
    const send = async (body: string): Promise<string> => {
      const reply = await call(`${base}/v1/chat/completions`, { headers: { ...bearer, 'accept-encoding': 'gzip' }, body }).reply
      await read(reply)
      await settled.next()
      const seen = await upstream.requests.next()
      t.equal(seen.headers['accept-encoding'], seen.body.toString() === body ? 'gzip' : 'identity')
      return seen.body.toString()
    }
    upstream.respond = () => ({ length: false })
    t.equal(await send(streamedChat), '{"stream_options":{"include_usage":true},' + streamedChat.slice(1))
    const other = '{"stream_options":{"include_obfuscation":false},' + streamedChat.slice(1)
    t.equal(await send(other), other.replace('{"include_obf', '{"include_usage":true,"include_obf'))
    const asked = '{"stream_options":{"include_usage":true},' + streamedChat.slice(1)
    t.equal(await send(asked), asked)
    t.equal(await send(chat), chat)
  })

  t.test(`${host.name}: a length that is no longer true is not told`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const base = await listen(app)
    for (const script of [{ length: true }, { length: true, split: 'events' }] as const) {
      upstream.queue(script)
      const { bytes, cut } = await read(await call(`${base}/v1/chat/completions`, { headers: bearer, body: streamedChat }).reply)
      t.strictSame([bytes.toString(), cut], [withoutExtra('chat_completions.include_usage.sse'), false])
      t.equal((await settled.next()).outcome, 'ok')
    }
  })

  t.test(`${host.name}: nothing is asked for where that is switched off`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url, { usage: { includeUsage: false } })
    const base = await listen(app)
    const { bytes } = await read(await call(`${base}/v1/chat/completions`, { headers: bearer, body: streamedChat }).reply)
    t.equal(bytes.toString(), replyFixture('chat_completions.sse').toString())
    t.equal((await upstream.requests.next()).body.toString(), streamedChat)
    t.match(await settled.next(), { usage: { tokens: null, missing: 'no_usage' }, outcome: 'ok' })
  })

  t.test(`${host.name}: what is no success tells no usage, and misses none`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const base = await listen(app)
    for (const status of [400, 401, 429, 500, 503, 529]) {
      const body = '{"error":{"message":"x"},"usage":{"prompt_tokens":3,"completion_tokens":4}}'
      upstream.queue({ status, body })
      const { bytes } = await read(await call(`${base}/v1/chat/completions`, { headers: bearer, body: chat }).reply)
      t.equal(bytes.toString(), body)
      t.match(await settled.next(), { usage: { tokens: null, missing: null }, status })
    }
  })

  t.test(`${host.name}: counting endpoints feed no counter`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    for (const [url, headers, payload] of [
      ['/v1/messages/count_tokens', anthropic, JSON.stringify({ model: 'm', messages: message.messages })],
      ['/v1beta/models/m:countTokens', gemini, contents],
      ['/v1/responses/input_tokens', bearer, '{"model":"m","input":"hi"}'],
    ] as const) {
      const reply = await app.inject({ method: 'POST', url, headers, payload })
      t.equal(reply.statusCode, 200)
      t.match(await settled.next(), { usage: { tokens: null, missing: null }, outcome: 'ok' })
    }
  })
}

const [own, , , alone] = hosts

t.test('usage is asked for by upstream', async (t) => {
  const upstream = await startUpstream(t)
  for (const [includeUsage, asks] of [[{ main: false }, false], [{ main: true, other: false }, true], [{ other: false }, true]] as const) {
    const { app, settled } = await own.start(t, upstream.url, { usage: { includeUsage } })
    await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: bearer, payload: streamedChat })
    t.equal((await settled.next()).usage.tokens !== null, asks, JSON.stringify(includeUsage))
  }
})

t.test('alone it reads a body of any kind, and passes it on', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await alone.start(t, upstream.url)
  const base = await listen(app)
  const chunked = { 'transfer-encoding': 'chunked' }
  for (const [body, sent, headers] of [
    [streamedChat, '{"stream_options":{"include_usage":true},' + streamedChat.slice(1), chunked],
    [streamedChat, '{"stream_options":{"include_usage":true},' + streamedChat.slice(1), {}],
    [chat, chat, chunked],
    ['', '', chunked],
    ['', '', {}],
    ['no JSON', 'no JSON', {}],
  ] as const) {
    await read(await call(`${base}/v1/chat/completions`, { headers, body }).reply)
    const seen = await upstream.requests.next()
    t.equal(seen.body.toString(), sent)
    t.equal((await settled.next()).outcome, 'ok')
  }
  const large = await call(`${base}/v1/chat/completions`, { headers: { 'content-length': 33 * 1024 * 1024 } }).reply
  t.equal(large.statusCode, 413)
  t.match(JSON.parse((await read(large)).bytes.toString()), { error: { code: 'body_too_large' } })
  t.match(await settled.next(), { errorCode: 'body_too_large', usage: { missing: null } })
  t.equal(upstream.requests.size, 0)
})

t.test('alone it leaves a body that the host has parsed to the host', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await alone.start(t, upstream.url, { mount: { proxyPayloads: false } })
  const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: bearer, payload: streamedChat })
  t.equal(reply.body, replyFixture('chat_completions.sse').toString())
  t.equal((await settled.next()).usage.missing, 'no_usage')
})

t.test('options are checked at registration', async (t) => {
  for (const options of [{ includeUsage: 1 }, { includeUsage: null }, { includeUsage: { main: 'yes' } }, { includeUsages: true }]) {
    await t.rejects(startWith(options), { code: 'LLM_GATEWAY_OPTION' })
  }

  async function startWith (options: object): Promise<void> {
    await alone.start(t, 'http://127.0.0.1:1', { usage: options })
  }
})

t.test('requests of the host are not touched', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await alone.start(t, upstream.url)
  app.get('/own', async () => ({ ok: true }))
  t.same((await app.inject('/own')).json(), { ok: true })
  t.equal(settled.size, 0)
})
