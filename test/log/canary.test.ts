import { once } from 'node:events'
import { connect } from 'node:net'
import { Writable } from 'node:stream'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import { LogController, type FastifyServerOptions } from 'fastify'
import t from 'tap'
import { createRewriteUrl } from '../../plugins/index.js'
import { call, everyProtocol, listen, read, startGateway } from '../helpers/gateway.js'
import { startUpstream, type Script } from '../helpers/upstream.js'
import { scopeOf, startTracing } from '../tracing/sdk.js'
import { Canary } from './canary.js'

const caller = new Canary('sk-Zq7Wx2Vn9Lb4Td8Rf3Hj6Kc1Gp5My0')
const stranger = new Canary('sk-Uo4Ey9Ia7Sw2Dx5Fc8Gv1Hb6Jn3Km0')
const provider = new Canary('Pt9Yb3Xv6Mn1Qc8Zr5Lk2Wd7Jh4Sf0Ge')
const canaries = { caller, stranger, provider }

const chat = '{"model":"m","messages":[{"role":"user","content":"x"}]}'
const streamed = '{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}'
const message = '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}'
const contents = '{"contents":[{"parts":[{"text":"x"}]}]}'

interface Shot {
  readonly name: string
  readonly path: string
  readonly headers?: Record<string, string | string[]>
  readonly body?: string
  readonly method?: string
  /** What the upstream does. */
  readonly script?: Script
  /** The caller leaves as soon as the upstream has the request. */
  readonly leaves?: boolean
  readonly status?: number
}

const generate = '/v1beta/models/m:generateContent'
const version = { 'anthropic-version': '2023-06-01' }

function bearer (canary: Canary): Record<string, string> {
  return { authorization: `Bearer ${canary.secret}` }
}

/** Every carrier of every family, well placed and misplaced, and every way to fail. */
function shots ({ secret, encoded }: Canary): Shot[] {
  const carriers: Shot[] = [
    { name: 'bearer', path: '/v1/chat/completions', headers: { authorization: `Bearer ${secret}` }, body: chat },
    {
      name: 'basic',
      path: '/v1/chat/completions',
      headers: { authorization: `Basic ${Buffer.from(`user:${secret}`).toString('base64')}` },
      body: chat,
    },
    { name: 'no scheme', path: '/v1/chat/completions', headers: { authorization: secret }, body: chat },
    { name: 'x-api-key', path: '/v1/messages', headers: { authorization: '', 'x-api-key': secret, ...version }, body: message },
    { name: 'x-goog-api-key', path: generate, headers: { authorization: '', 'x-goog-api-key': secret }, body: contents },
    { name: 'query', path: `${generate}?key=${secret}`, headers: { authorization: '' }, body: contents },
    { name: 'encoded query', path: `${generate}?alt=json&key=${encoded}`, headers: { authorization: '' }, body: contents },
    { name: 'encoded name', path: `${generate}?%6bey=${secret}`, headers: { authorization: '' }, body: contents },
    { name: 'two in the query', path: `${generate}?key=${secret}&key=${secret}x`, headers: { authorization: '' }, body: contents },
    { name: 'query and a path to repair', path: `/v1beta//v1${generate}/?key=${secret}`, headers: { authorization: '' }, body: contents },
    { name: 'query of another family', path: `/v1/chat/completions?key=${secret}`, headers: { authorization: '' }, body: chat },
    { name: 'query of an unknown path', path: `/v1/nothing?key=${secret}`, headers: { authorization: '' }, body: chat },
    {
      name: 'query of a doubled path',
      path: `/v1/chat/completions/chat/completions?key=${secret}`,
      headers: { authorization: '' },
      body: chat,
    },
    {
      name: 'query of an ambiguous path',
      path: `/v1beta/models/a%00b:generateContent?key=${secret}`,
      headers: { authorization: '' },
      body: contents,
    },
    { name: 'query of a model list', path: `/v1beta/models?key=${secret}`, headers: { authorization: '' }, method: 'GET' },
    { name: 'wrong method', path: `${generate}?key=${secret}`, headers: { authorization: '' }, method: 'DELETE' },
    { name: 'cookie', path: '/v1/chat/completions', headers: { authorization: '', cookie: `key=${secret}` }, body: chat },
    {
      name: 'proxy-authorization',
      path: '/v1/chat/completions',
      headers: { authorization: '', 'proxy-authorization': `Bearer ${secret}` },
      body: chat,
    },
    { name: 'api-key', path: '/v1/chat/completions', headers: { authorization: '', 'api-key': secret }, body: chat },
    { name: 'twice', path: '/v1/chat/completions', headers: { authorization: [`Bearer ${secret}`, `Bearer ${secret}x`] }, body: chat },
    {
      name: 'every header at once',
      path: '/v1/messages',
      headers: { authorization: `Bearer ${secret}`, 'x-api-key': secret, 'x-goog-api-key': secret, cookie: secret, ...version },
      body: message,
    },
    {
      name: 'listed as hop-by-hop',
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${secret}`, connection: 'authorization' },
      body: chat,
    },
  ]
  const known = { path: '/v1/chat/completions', headers: bearer(caller) }
  const failures: Shot[] = [
    { name: 'not JSON', ...known, body: '{', status: 400 },
    { name: 'fails the schema', ...known, body: '{}', status: 400 },
    { name: 'wrong media type', ...known, headers: { ...bearer(caller), 'content-type': 'text/plain' }, body: chat, status: 415 },
    { name: 'too large', ...known, headers: { ...bearer(caller), 'content-length': '99999999' }, body: '', status: 413 },
    { name: 'not allowed', path: '/v1/embeddings', headers: bearer(caller), body: '{"model":"m","input":"x"}', status: 403 },
    { name: 'no version header', path: '/v1/messages', headers: { authorization: '', 'x-api-key': secret }, body: message },
    { name: 'upstream error', ...known, body: chat, script: { status: 500, body: { error: { message: 'x' } } }, status: 500 },
    { name: 'upstream cuts before headers', ...known, body: chat, script: { cutAt: 'headers' }, status: 502 },
    { name: 'upstream cuts a stream', ...known, body: streamed, script: { split: 'events', cutAt: 300 } },
    { name: 'upstream is slow', ...known, body: chat, script: { stallAt: 'headers' }, status: 504 },
    { name: 'caller leaves', ...known, body: chat, script: { stallAt: 'headers' }, leaves: true },
  ]
  return [...carriers, ...failures]
}

function spanText (spans: readonly ReadableSpan[]): string {
  // The client of the tests has the key in its own URL: its spans are not the gateway's.
  const ours = spans.filter((span) => !(scopeOf(span) === 'http' && span.kind === 2))
  return JSON.stringify(ours.map(({ name, attributes, events, status }) => ({ name, attributes, events, status })))
}

t.test('a key is found in its own spellings', async (t) => {
  for (const text of [caller.secret, `x${caller.secret.slice(5, 13)}y`, caller.encoded, Buffer.from(caller.secret).toString('hex'),
    Buffer.from(`a:${caller.secret}`).toString('base64'), Buffer.from(`ab:${caller.secret}`).toString('base64'),
    Buffer.from(`abc${caller.secret}`).toString('base64')]) {
    t.not(caller.findIn(text).length, 0, text)
  }
  t.strictSame(caller.findIn(`${stranger.secret} Bearer key=`), [])
})

interface Host {
  readonly name: string
  readonly server: FastifyServerOptions
  readonly fastify: boolean
}

/** A host that owns its constructor; and one that does not, whose own lines and instrumentation would tell the URL. */
const hosts: readonly Host[] = [
  { name: 'with rewriteUrl', server: { rewriteUrl: createRewriteUrl() }, fastify: true },
  { name: 'without rewriteUrl', server: { logController: new LogController({ disableRequestLogging: true }) }, fastify: false },
]

for (const { name, server, fastify } of hosts) {
  t.test(`no key is in a log line, a span, a metric or an error, ${name}`, async (t) => {
    const { finished } = startTracing(t, { sdk: true, http: true, undici: true, fastify })
    const lines: string[] = []
    const stream = new Writable({
      write (chunk, _encoding, done) {
        lines.push(String(chunk))
        done()
      },
    })
    const upstream = await startUpstream(t)
    const { app, settled } = await startGateway(t, upstream.url, {
      upstreams: {
        main: { url: upstream.url, credential: provider.secret }, nobody: { url: 'http://127.0.0.1:1', credential: provider.secret },
      },
      groups: {
        all: { protocols: everyProtocol.filter((name) => name !== 'embeddings'), upstream: 'main' },
        lost: { protocols: everyProtocol, upstream: 'nobody' },
      },
      keys: [{ id: 'caller', group: 'all', secret: caller.secret }, { id: 'lost', group: 'lost', secret: `${caller.secret}lost` }],
      forward: { headersTimeoutMs: 1_500 },
    }, { logger: { level: 'trace', stream }, ...server })
    app.addHook('onResponse', async ({ log, url, originalUrl, query }) => log.info({ url, originalUrl, query }, 'what a host may log'))
    const url = await listen(app)
    const replies: string[] = []

    for (const canary of [caller, stranger]) {
      for (const { name, path, headers = {}, body = '', method = 'POST', script, leaves = false, status } of shots(canary)) {
        if (script !== undefined) upstream.queue(script)
        const { request, reply } = call(url + path, { method, headers, body })
        if (leaves) {
          await upstream.arrivals.next()
          request.destroy()
          continue
        }
        const answer = await reply
        if (status !== undefined) t.equal(answer.statusCode, status, name)
        const { bytes } = await read(answer)
        if (answer.statusCode !== 200) replies.push(`${name}: ${JSON.stringify(answer.headers)} ${bytes.toString()}`)
        while (upstream.arrivals.size > 0) await upstream.arrivals.next()
      }
    }
    const refusedConnection = call(`${url}/v1/chat/completions`, { headers: { authorization: `Bearer ${caller.secret}lost` }, body: chat })
    const unreachable = await refusedConnection.reply
    t.equal(unreachable.statusCode, 502)
    replies.push((await read(unreachable)).bytes.toString())
    replies.push(await brokenRequest(url))
    while (settled.size > 0) await settled.next()

    const metrics = (await app.inject('/metrics')).body
    t.ok(replies.length > 50)
    t.equal(lines.some((line) => line.includes('incoming request')), fastify, 'Fastify\'s own lines')
    t.ok(lines.some((line) => line.includes('model request')))
    t.ok(finished().some((span) => scopeOf(span) === 'fastify-llm-gateway'))
    const places = { logs: lines.join(''), spans: spanText(finished()), metrics, errors: replies.join('\n') }
    for (const [place, text] of Object.entries(places)) {
      for (const [name, canary] of Object.entries(canaries)) t.strictSame(canary.findIn(text), [], `${name} in ${place}`)
    }
  })
}

/** Not even HTTP: what Node answers for itself. */
async function brokenRequest (url: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.end(`POST /v1/chat/completions?key=${caller.secret} HTTP/1.1\r\nauthorization: Bearer ${caller.secret}\r\nbroken header\r\n\r\n`)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(socket, 'close')
  return Buffer.concat(chunks).toString()
}
