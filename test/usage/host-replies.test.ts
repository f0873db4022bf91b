/** Replies that functions of the host's send in place of the stream that came: metered in whatever form they are sent. */
import { Readable } from 'node:stream'
import { ReadableStream } from 'node:stream/web'
import { text } from 'node:stream/consumers'
import { gunzipSync, gzipSync } from 'node:zlib'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway from '../../plugins/index.js'
import { call, gatewayOptions, listen, read, watchSettled, type Gateway } from '../helpers/gateway.js'
import { replyFixture, startUpstream, usageOf, type Upstream } from '../helpers/upstream.js'

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const streamed = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
const { leaves } = usageOf['chat_completions.json'] ?? {}

type Send = (reply: FastifyReply, fetched: Response) => unknown

interface Running extends Gateway {
  readonly url: string
  readonly upstream: Upstream
}

async function start (t: Test, route: (app: FastifyInstance, upstream: Upstream) => unknown): Promise<Running> {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  const { upstreams: _, ...own } = gatewayOptions(upstream.url, {
    routes: false, groups: { all: { protocols: ['chat_completions'], limits: { balance: 1_000_000 } } },
  })
  await app.register(llmGateway, own)
  await route(app, upstream)
  return { app, upstream, settled: watchSettled(app), url: `${await listen(app)}/v1/chat/completions` }
}

/** A route of the host's that asks the provider by itself. */
function fetching (send: Send): (app: FastifyInstance, upstream: Upstream) => void {
  return (app, upstream) => {
    app.post('/v1/chat/completions', async (request, reply) => {
      const headers = { 'content-type': 'application/json' }
      const fetched = await fetch(`${upstream.url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(request.body) })
      return await send(reply.code(fetched.status).type('application/json'), fetched)
    })
  }
}

/** A mount that reads a reply to its end before it sends it. */
async function collecting (app: FastifyInstance, { url }: Upstream): Promise<void> {
  const onResponse = async (_request: FastifyRequest, reply: FastifyReply, { stream }: { stream: Readable }): Promise<void> => {
    reply.send(await text(stream))
  }
  await app.register(httpProxy, { upstream: url, prefix: '/v1', rewritePrefix: '/v1', replyOptions: Object({ onResponse }) })
}

const sends: ReadonlyArray<readonly [form: string, send: Send]> = [
  ['an object', async (_reply, fetched) => await fetched.json()],
  ['a text', async (_reply, fetched) => await fetched.text()],
  ['bytes', async (_reply, fetched) => Buffer.from(await fetched.arrayBuffer())],
  ['a stream', (reply, fetched) => reply.send(fetched.body === null ? null : Readable.fromWeb(fetched.body))],
  ['a web stream', (reply, fetched) => reply.send(fetched.body)],
  ['a Response', (reply, fetched) => reply.send(fetched)],
]

for (const [form, send] of sends) {
  t.test(`a route of the host's sends ${form}`, async (t) => {
    const { settled, url, app, upstream } = await start(t, fetching(send))
    const { bytes, cut } = await read(await call(url, { body }).reply)
    t.strictSame([cut, JSON.parse(bytes.toString())], [false, JSON.parse(replyFixture('chat_completions.json').toString())])
    t.match(await settled.next(), { outcome: 'ok', usage: { tokens: leaves, missing: null }, upstreamReply: { status: 200 } })
    t.match((await app.inject('/metrics')).body, /balance_remaining_ratio\{group="all"\} 0\.99983/)
    upstream.queue({ status: 400, headers: { 'content-type': 'application/json' }, body: '{"error":{"message":"no"}}' })
    const refused = await call(url, { body }).reply
    t.strictSame([refused.statusCode, (await read(refused)).bytes.toString()], [400, '{"error":{"message":"no"}}'])
    t.match(await settled.next(), { outcome: 'client_error', usage: { tokens: null, missing: null } })
  })
}

t.test('a mount sends what it has read to its end, without the event that only the gateway asked for', async (t) => {
  const { settled, url, upstream } = await start(t, collecting)
  t.equal((await read(await call(url, { body }).reply)).bytes.toString(), replyFixture('chat_completions.json').toString())
  t.match(await settled.next(), { outcome: 'ok', usage: { tokens: leaves } })
  const whole = replyFixture('chat_completions.include_usage.sse').toString()
  const { bytes } = await read(await call(url, { body: streamed }).reply)
  t.equal(bytes.toString(), whole.split('\n\n').filter((event) => !event.includes('"choices":[]')).join('\n\n'))
  t.match(await settled.next(), { outcome: 'ok', stream: true, usage: { tokens: usageOf['chat_completions.include_usage.sse']?.leaves } })
  upstream.queue({ encoding: 'gzip' })
  await (await call(url, { body, headers: { 'accept-encoding': 'gzip' } }).reply).resume()
  t.match(await settled.next(), { usage: { tokens: null, missing: 'parse_error' } }, 'bytes that were taken for text are none any more')
})

t.test('what a host writes past the framework is missing, and costs what was held for its input', async (t) => {
  const { settled, url, app } = await start(t, fetching(async (reply, fetched) => {
    reply.hijack()
    reply.raw.writeHead(fetched.status, { 'content-type': 'application/json' }).end(await fetched.text())
  }))
  await read(await call(url, { body }).reply)
  t.match(await settled.next(), { outcome: 'ok', usage: { tokens: null, missing: 'no_usage' } })
  const told = (await app.inject('/metrics')).body
  t.match(told, /usage_missing_total\{protocol="chat_completions",reason="no_usage"\} 1/)
  t.notMatch(told, /balance_remaining_ratio\{group="all"\} 1$/m)
})

t.test('bytes that a host sends packed are read behind the reply', async (t) => {
  const { settled, url } = await start(t, fetching(async (reply, fetched) => {
    return reply.header('content-encoding', 'gzip').send(gzipSync(await fetched.text()))
  }))
  const packed = gunzipSync((await read(await call(url, { body }).reply)).bytes)
  t.equal(packed.toString(), replyFixture('chat_completions.json').toString())
  t.match(await settled.next(), { usage: { tokens: leaves } })
})

t.test('a Response without a body, or whose body was read, is the framework\'s to send', async (t) => {
  const { settled, url } = await start(t, fetching((reply, fetched) => reply.send(new Response(null, fetched))))
  t.equal((await read(await call(url, { body }).reply)).bytes.length, 0)
  t.match(await settled.next(), { usage: { missing: 'no_usage' } })
  const other = await start(t, fetching(async (reply, fetched) => {
    await fetched.text()
    return reply.send(fetched)
  }))
  t.equal((await call(other.url, { body }).reply).statusCode, 500)
  t.match(await other.settled.next(), { usage: { missing: null } })
})

t.test('a web stream that somebody reads already is refused, as the framework does', async (t) => {
  const { settled, url } = await start(t, fetching((reply) => {
    const stream = new ReadableStream()
    stream.getReader()
    return reply.send(stream)
  }))
  t.equal((await call(url, { body }).reply).statusCode, 500)
  t.match(await settled.next(), { outcome: 'gateway_error' })
})
