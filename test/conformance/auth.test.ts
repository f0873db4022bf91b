/** Checks 19-30 of the checklist: where clients put their key, and what they read when it is refused. */
import { PassThrough } from 'node:stream'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../../plugins/index.js'
import { startUpstream } from '../helpers/upstream.js'
import { calls, credentials, main, plain, send, type Change } from './calls.js'
import { keys, optionsFor, startGateway, upstreamSecret, type Setup } from './gateway.js'

let gateway: Setup
t.before(async () => { gateway = await startGateway(t) })

const chat = plain('chat_completions')
const messages = plain('messages')
const gemini = plain('generate_content.generateContent')
const nobody = { authorization: null, 'x-api-key': null, 'x-goog-api-key': null }

/** What the upstream got of the last request, as one text. */
function wire (): string {
  const { url, rawHeaders, body } = gateway.upstream.seen.at(-1) ?? { url: '', rawHeaders: [], body: '' }
  return [url, ...rawHeaders, String(body)].join('\n')
}

const accepted: ReadonlyArray<readonly [check: string, call: typeof chat, changes: readonly Change[], header: string]> = [
  [
    'check 19: Bearer, its scheme in any case',
    chat,
    ['Bearer', 'bearer', 'BEARER'].map((scheme) => ({ headers: { authorization: `${scheme} ${keys.openai}` } })),
    'authorization',
  ],
  [
    'check 20: Anthropic 1.x, Bearer with version 2026-10-21',
    messages,
    [{ headers: { ...nobody, authorization: `Bearer ${keys.anthropic}`, 'anthropic-version': '2026-10-21' } }],
    'x-api-key',
  ],
  ['check 21: Anthropic 0.x, x-api-key with version 2023-06-01', messages, [{}], 'x-api-key'],
  ['check 23: x-goog-api-key', gemini, [{}], 'x-goog-api-key'],
  [
    'check 25: x-goog-api-key and Bearer with the same value', gemini, [{ headers: { authorization: `Bearer ${keys.gemini}` } }],
    'x-goog-api-key',
  ],
]

for (const [check, call, changes, header] of accepted) {
  t.test(check, async (t) => {
    for (const change of changes) {
      t.equal((await send(gateway.origin, call, change)).status, 200)
      t.match(gateway.upstream.seen.at(-1)?.headers[header], upstreamSecret)
      t.notMatch(wire(), keys[call.family], 'the key of the caller stays here')
    }
  })
}

t.test('check 22: both variables of Claude Code set: the first source decides, the other one never travels', async (t) => {
  t.equal((await send(gateway.origin, messages, { headers: { authorization: 'Bearer other-4711' } })).status, 200)
  t.notMatch(wire(), /other-4711/)
  const swapped = { 'x-api-key': 'other-4711', authorization: `Bearer ${keys.anthropic}` }
  t.equal((await send(gateway.origin, messages, { headers: swapped })).status, 401, 'no second source after the first one failed')
})

t.test('check 24: ?key= with encoded characters, absent upstream, in logs and in metrics', async (t) => {
  const secret = 'sk+gemini/4711=='
  const upstream = await startUpstream(t)
  const log = new PassThrough()
  const lines: string[] = []
  log.on('data', (line: Buffer) => lines.push(line.toString()))
  const app = Fastify({ logger: { level: 'trace', stream: log }, forceCloseConnections: true })
  const options = optionsFor(upstream.url)
  await app.register(llmGateway, { ...options, keys: [{ id: 'g', group: 'gemini', secret }] })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(async () => await app.close())
  const encoded = 'sk%2Bgemini%2F4711%3D%3D'
  for (const path of [`${gemini.path}?alt=json&key=${encoded}`, `/v1/v1beta/models/model-1:generateContent?key=${encoded}&x=%2F`]) {
    t.equal((await send(origin, gemini, { path, headers: nobody })).status, 200)
  }
  t.equal(upstream.seen[0]?.url, `${gemini.path}?alt=json`)
  t.equal(upstream.seen[1]?.url, `${gemini.path}?x=%2F`, 'the rest of the query stays byte for byte')
  t.equal((await send(origin, gemini, { path: `${gemini.path}?key=wrong%2Bsecret`, headers: nobody })).status, 401)
  const metrics = await (await fetch(`${origin}/metrics`)).text()
  t.match(metrics, /llm_gateway_requests_total/)
  t.ok(lines.length > 0)
  // Fastify's own request line is written before any hook runs; hosts that keep it use `createRewriteUrl`.
  const ours = lines.filter((line) => !line.includes('"incoming request"')).join('')
  for (const text of [ours, metrics, ...upstream.seen.map(({ rawHeaders }) => rawHeaders.join())]) {
    t.notMatch(text, secret)
    t.notMatch(text, encoded)
    t.notMatch(text, /wrong(\+|%2B)secret/)
  }
})

t.test('check 26: no key and a wrong key are 401 in each envelope, and nothing is forwarded', async (t) => {
  const before = gateway.upstream.seen.length
  for (const call of calls) {
    const missing = await send(gateway.origin, call, { headers: nobody })
    // Without its header, the model list of gemini cannot be told from the one of openai.
    t.equal(missing.status, 401, `${call.id} without a key`)
    t.equal((await send(gateway.origin, call, { key: 'sk-wrong-4711' })).status, 401, `${call.id} with a wrong key`)
  }
  t.equal(gateway.upstream.seen.length, before)
})

t.test('check 27: a group that lacks the protocol is 403, and the message says what it allows', async (t) => {
  const before = gateway.upstream.seen.length
  for (const call of calls) {
    const other = call.family === 'openai' ? 'anthropic' : 'openai'
    const reply = await send(gateway.origin, call, { key: keys[other] })
    t.equal(reply.status, 403, call.id)
    t.match(reply.text, /This API key may not be used for \w+\. It allows: [a-z_, ]+\./)
    t.equal((await send(gateway.origin, call, { key: keys.none })).status, 403, `${call.id}, a group that lacks all`)
  }
  t.equal(gateway.upstream.seen.length, before)
})

t.test('check 28: refusals that cannot heal say so', async (t) => {
  for (const call of main) {
    for (const change of [{ headers: nobody }, { key: 'sk-wrong-4711' }, { key: keys.none }]) {
      t.equal((await send(gateway.origin, call, change)).headers['x-should-retry'], 'false')
    }
  }
})

t.test('check 29: messages without a version, or with one that nobody knows, are 400', async (t) => {
  for (const id of ['messages', 'messages.count_tokens']) {
    for (const version of [null, '2001-01-01']) {
      const reply = await send(gateway.origin, plain(id), { headers: { 'anthropic-version': version } })
      t.equal(reply.status, 400)
      t.match(reply.json, { type: 'error', error: { type: 'invalid_request_error', message: /2023-06-01, 2026-10-21/ } })
    }
  }
})

t.test('check 30: HEAD / without a key is answered, and alarms nobody', async (t) => {
  const { origin } = await startGateway(t)
  for (const path of ['/', '/v1']) {
    const reply = await send(origin, chat, { method: 'HEAD', path, headers: nobody, body: '' })
    t.equal(reply.status, 200)
  }
  t.notMatch(await (await fetch(`${origin}/metrics`)).text(), /auth_failures_total\{.*\} [1-9]/)
})

t.test('headers of clients travel; only credentials do not', async (t) => {
  const headers = {
    'anthropic-beta': 'b-1,b-2',
    'openai-organization': 'org-1',
    'openai-project': 'proj-1',
    'x-stainless-lang': 'js',
    'idempotency-key': 'idem-1',
    'x-goog-api-client': 'client/1',
    'user-agent': 'Client/1',
    'x-app': 'cli',
  }
  t.equal((await send(gateway.origin, messages, { path: '/v1/messages?beta=true', headers })).status, 200)
  t.equal(gateway.upstream.seen.at(-1)?.url, '/v1/messages?beta=true')
  t.match(gateway.upstream.seen.at(-1)?.headers, { ...headers, 'anthropic-version': '2023-06-01' })
  const decoys = { 'x-goog-api-key': 'decoy-1', 'api-key': 'decoy-2', cookie: 'k=decoy-3', 'proxy-authorization': 'Basic decoy-4' }
  t.equal(
    (await send(gateway.origin, chat, { headers: { ...decoys, 'x-api-key': 'decoy-5', connection: 'authorization, x-odd' } })).status, 200
  )
  t.notMatch(wire(), /decoy-/)
  t.same(credentials('openai', keys.openai).authorization?.includes(keys.openai), true)
  t.notMatch(wire(), keys.openai)
})
