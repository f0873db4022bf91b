import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { deflateRawSync, gzipSync } from 'node:zlib'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import t, { type Test } from 'tap'
import { modelCallOf, type ModelCall } from '../../plugins/core/call/model-call.js'
import llmGateway, { proxyOptions, type LlmGatewayOptions } from '../../plugins/index.js'
import { call, everyProtocol, gatewayOptions, listen, read, secret, watchSettled } from '../helpers/gateway.js'
import { Signal, startUpstream, type Script, type Upstream } from '../helpers/upstream.js'

const canary = 'AIzaSy-canary/operators+secret'
const chat = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] })

const told = { error: { code: 403, message: `Consumer 'api_key:${canary}' has been suspended.`, status: 'PERMISSION_DENIED' } }

async function places (t: Test, upstream: Upstream): Promise<Record<string, FastifyInstance>> {
  const main = { url: upstream.url, credential: canary }
  const config = JSON.stringify({ strategy: { mode: 'single' }, targets: [{ provider: 'google', api_key: canary }] }, null, 1)
  const inConfig = { url: upstream.url, headers: { 'x-portkey-config': config.replaceAll('\n', '') } }
  const host = { groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false }
  const options: Record<string, LlmGatewayOptions> = {
    'own routes': gatewayOptions('', { upstreams: { main } }),
    'a secret in JSON among the headers of an upstream': gatewayOptions('', { upstreams: { main: inConfig } }),
    'a secret in a header within JSON': gatewayOptions('', {
      upstreams: { main: { url: upstream.url, headers: { 'helicone-fallbacks': `[{"headers":{"Authorization":"Bearer ${canary}"}}]` } } },
    }),
    'a secret among the headers of an upstream that gets the keys of callers': gatewayOptions('', {
      upstreams: { main: { url: upstream.url, headers: { 'x-portkey-aws-session-token': canary }, credential: 'forward' } },
    }),
    'a secret in the query of an upstream': gatewayOptions('', {
      upstreams: { main: { url: upstream.url, query: { key: canary, 'api-version': '1' } } },
    }),
    'a pool': gatewayOptions('', {
      upstreams: { main, other: main },
      pools: { both: { members: ['main', 'other'] } },
      groups: { all: { protocols: everyProtocol, upstream: 'both' } },
    }),
    'a mount of a group with an upstream': {
      ...host, upstreams: { main }, groups: { all: { protocols: everyProtocol, upstream: 'main' } },
    },
    'a mount with a secret of its own': host,
    'a mount with a secret in its query': host,
    'a mount with the line of a file in its query': host,
  }
  const apps: Record<string, FastifyInstance> = {}
  for (const [place, given] of Object.entries(options)) {
    const app = apps[place] = Fastify()
    t.teardown(() => app.close())
    await app.register(llmGateway, given)
    if (given.routes !== false) continue
    const rewriteRequestHeaders = (_: unknown, headers: IncomingHttpHeaders): IncomingHttpHeaders => {
      return { ...headers, Authorization: `Bearer ${canary}` }
    }
    const key = place.includes('line') ? `${canary}\n` : canary
    const queryString = (): string => new URLSearchParams({ key }).toString()
    await app.register(httpProxy, {
      ...proxyOptions(),
      upstream: upstream.url,
      prefix: '/v1',
      rewritePrefix: '/v1',
      replyOptions: place.endsWith('query') ? { queryString } : { rewriteRequestHeaders },
    })
  }
  return apps
}

function packedIn (form: 'base64' | 'base64url', before: string): string {
  return Buffer.from(`${before}${canary}?>~`).toString(form)
}

/** Each character that is no letter. */
function escapedBy (escape: (code: number) => string): string {
  return canary.replaceAll(/\W/g, (letter) => escape(letter.charCodeAt(0)))
}

const echoes: Record<string, Script> = {
  plainly: { body: told },
  'in pieces': { body: told, split: 'bytes' },
  packed: { body: told, encoding: 'gzip' },
  'packed otherwise': { body: told, encoding: 'br' },
  'packed by zlib': { body: told, encoding: 'deflate' },
  'packed without the frame of zlib': { body: deflateRawSync(JSON.stringify(told)), headers: { 'content-encoding': 'deflate' } },
  'packed by the other name': { body: gzipSync(JSON.stringify(told)), headers: { 'content-encoding': 'X-GZIP' } },
  'in bytes that are not what they say': { body: JSON.stringify(told), headers: { 'content-encoding': 'identity, gzip' } },
  'packed twice': { body: gzipSync(gzipSync(JSON.stringify(told))), headers: { 'content-encoding': 'gzip, gzip' } },
  'packed more often than is read': {
    body: gzipSync(gzipSync(gzipSync(JSON.stringify(told)))), headers: { 'content-encoding': 'gzip, gzip, gzip' },
  },
  'in a coding that nobody knows': { body: JSON.stringify(told), headers: { 'content-encoding': 'gzip, rot13' } },
  'with slashes escaped': { body: JSON.stringify(told).replaceAll('/', '\\/') },
  'with letters escaped': { body: JSON.stringify(told).replaceAll('-', '\\u002d').replaceAll('+', '\\u002B') },
  'percent-encoded': { body: { error: { message: `https://provider?key=${encodeURIComponent(canary)}` } } },
  'percent-encoded twice': { body: { error: { message: encodeURIComponent(encodeURIComponent(canary)) } } },
  'in hex': { body: { error: { message: Buffer.from(canary).toString('hex') } } },
  'in capital hex': { body: { error: { message: Buffer.from(canary).toString('hex').toUpperCase() } } },
  ...Object.fromEntries(['', 'a', 'ab', 'abc'].flatMap((before) => (['base64', 'base64url'] as const).map((form): [string, Script] => {
    return [`in ${form} behind ${before.length} bytes`, { body: { error: { message: packedIn(form, before) } } }]
  }))),
  'in base64 with slashes escaped': { body: JSON.stringify({ error: { message: packedIn('base64', '?') } }).replaceAll('/', '\\/') },
  'as entities of decimals': { body: { error: { message: escapedBy((code) => `&#${code};`) } } },
  'as entities of hex': { body: { error: { message: escapedBy((code) => `&#x00${code.toString(16).toUpperCase()};`) } } },
  'as entities in JSON': { body: { error: { message: escapedBy((code) => `\\u0026#${code};`) } } },
  'as entities of entities': { body: { error: { message: escapedBy((code) => `&amp;#${code};`) } } },
  'as a program prints it': { body: { error: { message: escapedBy((code) => `\\x${code.toString(16)}`) } } },
  'on a page': { body: `<p>Redirecting to https://provider?key=${canary}</p>`, headers: { 'content-type': 'text/html' } },
  'in a header': { headers: { 'x-echo': canary }, body: { error: { message: 'no' } } },
  'on a page and in headers that are for clients': {
    body: '<p>no</p>', headers: { 'content-type': 'text/html', 'retry-after': canary, 'x-request-id': canary, 'x-should-retry': canary },
  },
  'in headers that are for clients': { headers: { 'retry-after': canary, 'x-request-id': canary }, body: { error: { message: 'no' } } },
}

function plain (text: string): string {
  return text.replaceAll('\\/', '/').replaceAll(/\\u002d/gi, '-').replaceAll(/\\u002b/gi, '+')
}

t.test('a caller does not read the secret of an upstream in its errors and redirections', async (t) => {
  const upstream = await startUpstream(t)
  for (const [place, app] of Object.entries(await places(t, upstream))) {
    const base = await listen(app)
    for (const [how, script] of Object.entries(echoes)) {
      for (const status of [302, 403, 500]) {
        upstream.respond = () => ({ status, ...script })
        const reply = await fetch(`${base}/v1/chat/completions`, {
          method: 'POST',
          redirect: 'manual',
          headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
          body: chat,
        })
        const text = await reply.text()
        t.notMatch(decodeURIComponent(plain(text)) + JSON.stringify([...reply.headers]), canary, `${place}, ${how}`)
        t.match(JSON.parse(text), { error: { message: 'The model provider answered with an error.' } }, `${place}, ${how}`)
        t.equal(reply.status, status, `${place}, ${how}`)
      }
    }
  }
})

/** What reply-from hands a host's `onResponse`. */
interface Received {
  readonly statusCode: number
  readonly headers: OutgoingHttpHeaders
  readonly stream: Readable
}

t.test('nor where a mount hands on a reply as it gets it, and its callers do not wait for the bytes that were left out', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, {
    groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
  })
  const replyOptions: object = {
    rewriteRequestHeaders: (_: unknown, headers: object) => ({ ...headers, authorization: `Bearer ${canary}` }),
    onResponse: (_: unknown, reply: FastifyReply, { statusCode, headers, stream }: Received) => {
      reply.hijack()
      stream.pipe(reply.raw.writeHead(statusCode, headers))
    },
  }
  await app.register(httpProxy, { ...proxyOptions(), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', replyOptions })
  const base = await listen(app)
  for (const script of [{ body: told }, { body: `<p>${canary}</p>`, type: 'text/html' }, { body: '<p>', type: 'text/html' }]) {
    const { body, type = 'application/json' } = script
    upstream.queue({ status: 403, body, headers: { 'content-type': type, 'x-echo': canary, 'x-other': '1' } })
    const answer = await call(`${base}/v1/chat/completions`, { body: chat }).reply
    t.strictSame([answer.statusCode, answer.headers['content-length'], answer.headers['x-other']], [403, '0', '1'])
    t.equal(answer.headers['x-echo'], undefined)
    answer.destroy()
  }
  const page = '<p>Bad Gateway</p>'
  upstream.queue({ status: 502, body: page, headers: { 'content-type': 'text/html' } })
  const { bytes } = await read(await call(`${base}/v1/chat/completions`, { body: chat }).reply)
  t.equal(bytes.toString(), page, 'any other page passes as it came')
})

t.test('nor the secret of another member of a pool, which a cache of the gateway behind them repeats', async (t) => {
  const upstream = await startUpstream(t)
  const other = `${canary}-of-another`
  for (const credential of [canary, () => canary, 'forward']) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(llmGateway, gatewayOptions('', {
      upstreams: { main: { url: upstream.url, credential }, other: { url: upstream.url, credential: other } },
      pools: { both: { members: ['main', { upstream: 'other', tier: 2 }] } },
      groups: { all: { protocols: everyProtocol, upstream: 'both' } },
    }))
    for (const status of [400, 404]) {
      upstream.queue({ status, body: { error: { message: `${other} is not known here` } } })
      const reply = await app.inject({
        method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${secret}` }, payload: JSON.parse(chat),
      })
      t.equal(reply.statusCode, status)
      t.match(reply.json(), { error: { message: 'The model provider answered with an error.' } })
    }
  }
})

t.test('any other error passes as it came, and so does one that is longer than they are', async (t) => {
  const upstream = await startUpstream(t)
  const short = gatewayOptions('', { upstreams: { main: { url: upstream.url, credential: 'error' } } })
  const none = gatewayOptions('', { upstreams: { main: { url: upstream.url } } })
  const headers = { 'openai-organization': 'org-of-ours', 'x-portkey-provider': 'anthropic' }
  const named = { query: { 'api-version': '2026-10-21' }, headers }
  for (const given of [gatewayOptions('', { upstreams: { main: { url: upstream.url, credential: canary, ...named } } }), short, none]) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(llmGateway, given)
    const call = {
      method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${secret}` }, payload: JSON.parse(chat),
    } as const
    const packed = gzipSync('{"error":{"message":"anthropic error: org-of-ours: 2026-10-21 has no such model"}}')
    upstream.queue({ status: 429, body: packed, headers: { 'content-encoding': 'gzip', 'retry-after': '3' }, split: [5] })
    const reply = await app.inject(call)
    t.strictSame([reply.statusCode, reply.rawPayload, reply.headers['retry-after']], [429, packed, '3'])
    const long = `{"error":{"message":"${'x'.repeat(300 * 1024)}"}}`
    upstream.queue({ status: 400, body: long, split: [10, 290_000, 300_000, 300_001] })
    t.equal((await app.inject(call)).body, long)
    upstream.queue({ status: 400, body: long, split: [10, 20], cutAt: 30 })
    t.equal((await app.inject(call)).statusCode, 502, 'one that broke off')
  }
})

t.test('a text of eight characters is a secret, and a shorter one may stand in an error by chance', async (t) => {
  const upstream = await startUpstream(t)
  for (const [credential, isTold] of [['k3y-abcd', false], ['k3y-abc', true]] as const) {
    const ask = await callerOf(t, upstream, { upstreams: { main: { url: upstream.url, credential } } })
    upstream.queue({ status: 400, body: { error: { message: `no key ${credential}` } } })
    const { status, text } = await ask()
    t.strictSame([status, text.includes(credential)], [400, isTold])
  }
})

t.test('an error that stalls is told in words of ours, and holds nothing for longer than its upstream does', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions('', { upstreams: { main: { url: upstream.url, credential: canary } } }))
  upstream.queue({ status: 429, body: told, headers: { 'retry-after': '3' }, stallAt: 40 })
  const reply = await app.inject({
    method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${secret}` }, payload: JSON.parse(chat),
  })
  t.strictSame([reply.statusCode, reply.headers['retry-after']], [429, '3'])
  t.match(reply.json(), { error: { message: 'The model provider answered with an error.' } })
})

t.test('an error that breaks off is a refusal without usage, and is not looked for its secret after that', async (t) => {
  const upstream = await startUpstream(t)
  const lines: string[] = []
  const app = Fastify({ logger: { stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions('', { upstreams: { main: { url: upstream.url, credential: canary } } }))
  const settled = watchSettled(app)
  upstream.queue({ status: 400, body: told, cutAt: 30 })
  const reply = await app.inject({
    method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${secret}` }, payload: JSON.parse(chat),
  })
  t.equal(reply.statusCode, 502)
  t.match(await settled.next(), { upstreamReply: { status: 400 }, usage: { missing: null }, outcome: 'upstream_error' })
  // An error that stalls would be given up now.
  await pause(1_300)
  t.notMatch(lines.join(), /may hold its secret/)
})

t.test('a caller that leaves while an error is held back leaves a refusal without usage', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions('', { upstreams: { main: { url: upstream.url, credential: canary } } }))
  const calls = new Signal<ModelCall | null>()
  app.addHook('preHandler', async (request) => calls.push(modelCallOf(request)))
  const settled = watchSettled(app)
  const url = await listen(app)
  // It is held for a second, which a busy machine may miss.
  for (let tries = 0; tries < 5; tries += 1) {
    upstream.queue({ status: 400, body: told, stallAt: 30 })
    const { request } = call(`${url}/v1/chat/completions`, { body: chat })
    const llm = await calls.next()
    while (llm?.upstreamReply.status === 0) await pause(5)
    request.destroy()
    const { outcome, usage } = await settled.next()
    if (outcome !== 'client_abort') continue
    t.equal(usage.missing, null)
    return
  }
  t.fail('it never left in time')
})

t.test('an error that comes slowly passes as it came where there is no secret to tell', async (t) => {
  const upstream = await startUpstream(t)
  const slow = { error: { message: 'the context is too long' } }
  for (const credential of [{}, { credential: 'short' }]) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(llmGateway, gatewayOptions('', { upstreams: { main: { url: upstream.url, ...credential } } }))
    upstream.queue({ status: 400, body: slow, split: [5], before: async (write) => { if (write === 1) await pause(1_500) } })
    const reply = await app.inject({
      method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${secret}` }, payload: JSON.parse(chat),
    })
    t.strictSame([reply.statusCode, reply.json()], [400, slow])
  }
})

const before = 'x'.repeat(260 * 1024)

/** A gateway on a real socket whose upstream is sent the canary. */
async function callerOf (t: Test, upstream: Upstream, options: Partial<LlmGatewayOptions> = {}): Promise<Ask> {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions('', { upstreams: { main: { url: upstream.url, credential: canary } }, ...options }))
  const base = await listen(app)
  return async (body = {}) => {
    const reply = await fetch(`${base}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...JSON.parse(chat), ...body }),
    })
    return { status: reply.status, text: await reply.text() }
  }
}

type Ask = (body?: object) => Promise<{ readonly status: number, readonly text: string }>

t.test('a large error that holds the secret in its begin is told in words of ours', async (t) => {
  const upstream = await startUpstream(t)
  const ask = await callerOf(t, upstream)
  upstream.queue({ status: 422, body: `${canary} ${before}`, split: [261_000, 265_000] })
  const { status, text } = await ask()
  t.strictSame([status, JSON.parse(text).error.message], [422, 'The model provider answered with an error.'])
})

t.test('a large error that holds the secret further on is masked there, wherever it is cut', async (t) => {
  const upstream = await startUpstream(t)
  const ask = await callerOf(t, upstream)
  const escaped = canary.replaceAll('/', '\\\\\\/').replaceAll('-', '\\u002d').replaceAll('+', '\\\\u002B')
  const longest = [...canary].map((letter) => `\\\\\\u00${letter.charCodeAt(0).toString(16)}`).join('')
  for (const written of [canary, encodeURIComponent(canary), escaped, longest]) {
    const at = before.length + 4_000
    for (let cut = 0; cut <= written.length; cut += Math.ceil(written.length / 12)) {
      const body = `${before}${'y'.repeat(4_000)}${written}, ${canary} and more`
      upstream.queue({ status: 422, body, split: [before.length + 10, at + cut, at + cut + 2] })
      const { status, text } = await ask()
      t.equal(status, 422)
      const masked = `${'*'.repeat(written.length)}, ${'*'.repeat(canary.length)} and more`
      t.equal(text.slice(-5_000), `${before}${'y'.repeat(4_000)}${masked}`.slice(-5_000))
    }
  }
})

t.test('a large error whose bytes are packed is told in words of ours, and passes where there is no secret to tell', async (t) => {
  const upstream = await startUpstream(t)
  const body = randomBytes(300 * 1024).toString('base64')
  const large = { status: 422, body, encoding: 'gzip', split: [1_000, 270_000] } as const
  upstream.queue(large, large)
  const { status, text } = await (await callerOf(t, upstream))()
  t.strictSame([status, JSON.parse(text).error.message], [422, 'The model provider answered with an error.'])
  const ask = await callerOf(t, upstream, { upstreams: { main: { url: upstream.url } } })
  t.strictSame(await ask(), { status: 422, text: body })
})

t.test('a reply of success that tells of a failure does not hold the secret', async (t) => {
  const upstream = await startUpstream(t)
  const pool = { upstreams: { main: { url: upstream.url, credential: canary }, other: { url: upstream.url, credential: canary } } }
  const askers = [
    await callerOf(t, upstream),
    await callerOf(t, upstream, {
      ...pool,
      pools: { both: { members: ['main', 'other'], retryOn: ['first_event'] } },
      groups: { all: { protocols: everyProtocol, upstream: 'both' } },
    }),
  ]
  const event = `data: ${JSON.stringify(told)}\n\n`
  const hidden = JSON.stringify(told).replace(canary, '*'.repeat(canary.length))
  for (const ask of askers) {
    upstream.respond = () => ({ body: event, headers: { 'content-type': 'text/event-stream' } })
    t.strictSame(await ask({ stream: true }), { status: 200, text: `data: ${hidden}\n\n` })
    upstream.respond = () => ({ body: told })
    t.strictSame(await ask(), { status: 200, text: hidden })
  }
})

t.test('a reply of success passes as it came, whatever it holds', async (t) => {
  const upstream = await startUpstream(t)
  const ask = await callerOf(t, upstream)
  const body = JSON.stringify({ id: 'x', object: 'chat.completion', choices: [{ message: { content: canary } }] })
  upstream.queue({ body })
  t.strictSame(await ask(), { status: 200, text: body })
})

t.test("a caller's own secret that travels on is no secret to it", async (t) => {
  const upstream = await startUpstream(t)
  const ask = await callerOf(t, upstream, { upstreams: { main: { url: upstream.url, credential: 'forward' } } })
  const body = JSON.stringify({ error: { message: `Incorrect API key provided: ${secret}.` } })
  upstream.queue({ status: 401, body })
  t.strictSame(await ask(), { status: 401, text: body })
})

t.test('a failure that a reply of success tells of passes as it came where there is no secret to tell', async (t) => {
  const upstream = await startUpstream(t)
  const ask = await callerOf(t, upstream, { upstreams: { main: { url: upstream.url } } })
  upstream.queue({ body: told })
  t.strictSame(await ask(), { status: 200, text: JSON.stringify(told) })
})

t.test('a secret that was replaced while its request was on its way is not read either', async (t) => {
  const upstream = await startUpstream(t)
  const secrets = [canary, 'another-secret-of-the-operator']
  const credential = (): string => secrets.shift() ?? 'one-more-secret-of-the-operator'
  const ask = await callerOf(t, upstream, { upstreams: { main: { url: upstream.url, credential, credentialHeader: 'x-own-key' } } })
  upstream.queue({ status: 401, body: told }, { status: 401, body: told })
  const { status, text } = await ask()
  t.equal(upstream.seen.length, 2, 'it was renewed')
  t.strictSame([status, JSON.parse(text).error.message], [401, 'The model provider answered with an error.'])
})
