import t from 'tap'
import { call, everyProtocol, listen, read, secret, startGateway } from './helpers/gateway.js'
import { replyFixture, sha256, startUpstream, usageOf } from './helpers/upstream.js'

interface Case {
  readonly url: string
  readonly headers?: Record<string, string>
  readonly body: Record<string, unknown>
  readonly fixture: string
}

const bearer = { authorization: `Bearer ${secret}` }
const messages = [{ role: 'user', content: 'hi' }]
const contents = [{ parts: [{ text: 'hi' }] }]
const versioned = { 'x-api-key': secret, 'anthropic-version': '2023-06-01' }
const google = { 'x-goog-api-key': secret }

const cases: readonly Case[] = [
  { url: '/v1/chat/completions', headers: bearer, body: { model: 'm', messages }, fixture: 'chat_completions.json' },
  {
    url: '/v1/chat/completions',
    headers: bearer,
    body: { model: 'm', messages, stream: true, stream_options: { include_usage: true } },
    fixture: 'chat_completions.include_usage.sse',
  },
  { url: '/v1/responses', headers: bearer, body: { model: 'm', input: 'hi' }, fixture: 'responses.json' },
  { url: '/v1/responses', headers: bearer, body: { model: 'm', input: 'hi', stream: true }, fixture: 'responses.sse' },
  { url: '/v1/images/generations', headers: bearer, body: { model: 'm', prompt: 'hi' }, fixture: 'images.json' },
  { url: '/v1/images/generations', headers: bearer, body: { model: 'm', prompt: 'hi', stream: true }, fixture: 'images.sse' },
  { url: '/v1/images/generations', headers: bearer, body: { prompt: 'the provider has a model of its own' }, fixture: 'images.json' },
  { url: '/v1/embeddings', headers: bearer, body: { model: 'm', input: 'hi' }, fixture: 'embeddings.json' },
  { url: '/v1/messages', headers: versioned, body: { model: 'm', max_tokens: 9, messages }, fixture: 'messages.json' },
  { url: '/v1/messages', headers: versioned, body: { model: 'm', max_tokens: 9, messages, stream: true }, fixture: 'messages.sse' },
  { url: '/v1beta/models/m:generateContent', headers: google, body: { contents }, fixture: 'generate_content.json' },
  { url: `/v1beta/models/m:streamGenerateContent?alt=sse&key=${secret}`, body: { contents }, fixture: 'generate_content.stream.sse' },
  { url: '/v1beta/models/m:streamGenerateContent', headers: google, body: { contents }, fixture: 'generate_content.stream.json' },
]

t.test('every protocol, streamed or not: the same bytes, and the exact tokens in the metrics', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const url = await listen(app)
  const expected = new Map<string, number>()
  for (const { url: path, headers, body, fixture } of cases) {
    const sent = JSON.stringify(body)
    const reply = await call(url + path, { headers: { authorization: '', ...headers }, body: sent }).reply
    const { bytes } = await read(reply)
    t.equal(reply.statusCode, 200, `${path} ${bytes.toString()}`)
    t.equal(sha256(bytes), sha256(replyFixture(fixture)), `reply bytes of ${fixture}`)
    t.equal((await upstream.requests.next()).sha256, sha256(sent), `request bytes of ${fixture}`)
    const usage = usageOf[fixture]
    if (usage === undefined) throw new Error(fixture)
    for (const [leaf, tokens] of Object.entries(usage.leaves)) {
      const at = `${usage.protocol} ${leaf}`
      expected.set(at, (expected.get(at) ?? 0) + tokens)
    }
  }
  const text = await (await fetch(`${url}/metrics`)).text()
  for (const [at, tokens] of expected) {
    const [protocol = '', leaf = ''] = at.split(' ')
    const lines = text.split('\n').filter(
      (line) => line.startsWith('llm_gateway_tokens_total{') && line.includes(`protocol="${protocol}"`) && line.includes(`type="${leaf}"`)
    )
    t.equal(lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0), tokens, at)
  }
  t.notMatch(text, /llm_gateway_usage_missing_total\{.*\} [1-9]/)
  t.notMatch(text, secret)
})

t.test('a streamed chat whose caller did not ask for usage is metered and does not see that it was', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const url = await listen(app)
  const body = '{"model":"m","stream":true, "messages":[{"role":"user","content":"hi"}]}'
  const { bytes } = await read(await call(`${url}/v1/chat/completions`, { body }).reply)
  t.match((await upstream.requests.next()).json, { stream_options: { include_usage: true } })
  t.notMatch(bytes.toString(), /"choices":\s*\[\]/)
  t.match(bytes.toString(), /data: \[DONE\]/)
  const { tokens: usage, missing: usageMissing } = (await settled.next()).usage
  t.same(usage, usageOf['chat_completions.include_usage.sse']?.leaves)
  t.equal(usageMissing, null)
})

t.test('usage is still read after the caller has left, within the drain\'s bounds', async (t) => {
  const upstream = await startUpstream(t)
  const sse = replyFixture('chat_completions.include_usage.sse')
  for (const [drain, drained] of [[{}, true], [{ maxBytes: 10 }, false], [{ maxMs: 50 }, false], [{ maxConcurrent: 0 }, false]] as const) {
    const { app, settled } = await startGateway(t, upstream.url, { forward: { drain } })
    const url = await listen(app)
    let go = (): void => {}
    const gone = new Promise<void>((resolve) => { go = resolve })
    const never = new Promise<void>(() => {})
    // The first half goes out at once, the rest once the caller has left; for the time bound it never does.
    upstream.queue({
      fixture: 'chat_completions.include_usage.sse',
      split: [300, 400],
      before: (write) => write === 0 ? null : 'maxMs' in drain || ('maxBytes' in drain && write > 1) ? never : gone,
    })
    const { request, reply } = call(`${url}/v1/chat/completions`, {
      body: '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"x"}]}',
    })
    const seen = await upstream.requests.next()
    const message = await reply
    message.once('data', () => {
      request.destroy()
      message.once('close', () => setTimeout(go, 50))
    })
    t.equal(await seen.aborted, !drained, JSON.stringify(drain))
    const llm = await settled.next()
    t.match(llm, { outcome: 'client_abort', abortedBy: 'client', usage: { missing: drained ? null : 'client_abort' } })
    t.same(llm.usage.tokens, drained ? usageOf['chat_completions.include_usage.sse']?.leaves : null)
    t.ok(sse.length > 300)
  }
})

t.test('a wrong option fails at start and names itself', async (t) => {
  const cases: [options: Record<string, unknown>, message: RegExp][] = [
    [{ groups: { all: { protocols: everyProtocol, upstream: 'nowhere' } } }, /groups\.all\.upstream names nowhere/],
    [{ groups: { all: { protocols: everyProtocol, upstream: { responses: 'gone' } } } }, /groups\.all\.upstream\.responses names gone/],
    [
      { groups: { all: { protocols: ['responses', 'images'], upstream: { responses: 'main' } } } },
      /groups\.all\.upstream\.images is required/,
    ],
    [{ look_up: () => null }, /llmGateway\.look_up is not known/],
    [{ upstreams: { a: { url: 'http://a' }, b: { url: 'http://b' } } }, /groups\.all\.upstream is required/],
    [{ groups: { all: { protocols: [], upstream: 'constructor' } } }, /groups\.all\.upstream names constructor/],
    [{ groups: { all: { upstream: { responses: 'main' } } } }, /groups\.all\.protocols must be a list/],
    [{ groups: { all: { protocols: [], upstream: 5 } } }, /groups\.all\.upstream must be a name, or one for each protocol/],
    [{ groups: { all: { protocols: [], upstream: { responses: 5 } } } }, /groups\.all\.upstream must be a name, or one for each protocol/],
    [
      { groups: { all: { protocols: ['responses'], upstream: { responses: 'main', respones: 'main' } } } },
      /groups\.all\.upstream holds "respones"/,
    ],
    [{ groups: { all: null } }, /groups\.all must be an object/],
    [{ groups: 'all' }, /option groups must be an object/],
    [
      { upstreams: {}, groups: { all: { protocols: ['responses'] } }, keys: [] },
      /groups\.all\.upstream is required where .*; there is none: set routes: false if a mount of yours sends the requests$/,
    ],
    [{ upstreams: { main: 'http://a' } }, /upstreams\.main must be an object/],
    [{ groups: { all: { protocols: ['nothing'] } }, keys: [] }, /groups\.all\.protocols holds "nothing"/],
    [{ keys: [{ id: 'a', group: 'other', secret: 'x' }] }, /keys\[0\]\.group/],
    [{ prefix: 'no slash' }, /option prefix must be a path/],
    [{ upstreams: 'https://models.example' }, /option llmGateway\.upstreams must be an object/],
    [{ metrics: true }, /llmGateway\.metrics must be an object or false/],
    [{ usage: true }, /llmGateway\.usage must be an object/],
  ]
  for (const [options, message] of cases) await t.rejects(startGateway(t, 'http://127.0.0.1:1', options), { message })
})

t.test('below a prefix, without metrics and log', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, {
    prefix: '/llm', metrics: false, log: false, lookup: (credential) => credential === 'own' ? { id: 'x', group: 'all' } : null,
  })
  const reply = await app.inject({
    method: 'POST',
    url: '/llm/v1/v1/messages',
    headers: { 'x-api-key': 'own', 'anthropic-version': '2026-10-21', 'content-type': 'application/json' },
    payload: { model: 'm', max_tokens: 1, messages },
  })
  t.equal(reply.statusCode, 200)
  t.equal((await upstream.requests.next()).url, '/v1/messages')
  t.equal((await app.inject('/metrics')).statusCode, 404)
})
