/** Hooks and trailers of a host meet the body of a streamed reply as they would meet any stream. */
import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:http2'
import { PassThrough, pipeline, Readable, Transform } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import { modelCallOf } from '../../plugins/core/call/model-call.js'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { call, gatewayOptions, listen, read, secret, watchSettled } from '../helpers/gateway.js'
import { replyFixture, sha256, Signal, startUpstream } from '../helpers/upstream.js'

const fixture = 'chat_completions.include_usage.sse'
const headers = { authorization: `Bearer ${secret}` }
const body = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'

t.test('a hook that puts its own stream in place gets every byte, and holds the upstream back', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onSend', async (_request, _reply, payload) => payload instanceof Readable ? payload.pipe(new PassThrough()) : payload)
  await app.register(llmGateway, gatewayOptions(upstream.url))
  const url = await listen(app)
  const megabyte = 1024 * 1024
  const event = 'data: {"choices":[]}\n\n'
  const large = Buffer.from(event.repeat(48 * megabyte / event.length) + 'data: [DONE]\n\n')
  const taken = { megabytes: 0 }
  upstream.queue({
    headers: { 'content-type': 'text/event-stream' },
    body: large,
    split: Array.from({ length: 47 }, (_, i) => (i + 1) * megabyte),
    before: (write) => { taken.megabytes = write },
  })
  const reply = await call(`${url}/v1/chat/completions`, { headers, body }).reply
  reply.pause()
  let seen = -1
  while (seen !== taken.megabytes || seen === 0) {
    seen = taken.megabytes
    await wait(150)
  }
  t.ok(seen < 40, `${seen} of 48 MB were taken from the upstream while the caller read nothing`)
  const { bytes } = await read(reply)
  t.equal(sha256(bytes), sha256(large))
})

t.test('a hook that puts its own stream in place, and does not end it when the upstream breaks off, leaves no caller waiting', async (
  t
) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onSend', async (_request, _reply, payload) => payload instanceof Readable ? payload.pipe(new PassThrough()) : payload)
  await app.register(llmGateway, gatewayOptions(upstream.url))
  const url = await listen(app)
  upstream.queue({ fixture: 'chat_completions.sse', split: [200, 400], cutAt: 500 })
  t.equal((await read(await call(`${url}/v1/chat/completions`, { headers, body }).reply)).cut, true)
})

const drain = { maxMs: 0 }
const sites: Record<string, (app: FastifyInstance, upstream: string) => Promise<void>> = {
  'routes of the gateway\'s': async (app, upstream) => { await app.register(llmGateway, gatewayOptions(upstream, { forward: { drain } })) },
  'an adapted mount': async (app, upstream) => {
    await app.register(llmGateway, { ...gatewayOptions(upstream), routes: false })
    await app.register(httpProxy, { ...proxyOptions({ drain }), upstream, prefix: '/v1', rewritePrefix: '/v1' })
  },
  'a plain mount': async (app, upstream) => {
    const { upstreams, ...options } = gatewayOptions(upstream)
    await app.register(llmGateway, { ...options, routes: false })
    await app.register(httpProxy, { upstream, prefix: '/v1', rewritePrefix: '/v1' })
  },
}

for (const [where, build] of Object.entries(sites)) {
  t.test(`a caller that leaves is told as one where a hook puts its own stream in place: ${where}`, async (t) => {
    const upstream = await startUpstream(t)
    const lines: string[] = []
    const app: FastifyInstance = Fastify({ logger: { stream: { write: (line: string) => { lines.push(line) } } } })
    t.teardown(() => app.close())
    const sending = new Signal<string>()
    app.addHook('onSend', async ({ url }, _reply, payload) => {
      if (!(payload instanceof Readable)) return payload
      sending.push(url)
      // Passes nothing on before the upstream has ended, as a compression of small replies does.
      return pipeline(payload, new Transform({ transform: (_chunk, _encoding, done) => done() }), () => {})
    })
    await build(app, upstream.url)
    const settled = watchSettled(app)
    const url = await listen(app)
    upstream.queue({ fixture, split: [200], stallAt: 200 })
    const { request } = call(`${url}/v1/chat/completions`, { headers, body })
    await sending.next()
    request.destroy()
    t.match(await settled.next(), { outcome: 'client_abort', abortedBy: 'client', errorCode: null })
    t.match(lines.filter((line) => line.includes('"outcome":')).join(), /"outcome":"client_abort"/)
    t.notMatch(lines.join(), /model request failed/)
    t.match((await app.inject('/metrics')).body, /requests_total\{.*outcome="client_abort"\} 1/)
  })
}

/** What a hook puts in a reply's place. */
const substitutes = {
  'its own stream, sent once the caller has long left': async (reply: Readable): Promise<unknown> => {
    const packed = pipeline(reply, new PassThrough(), () => {})
    await once(packed, 'close')
    return packed
  },
  'a web stream': (reply: Readable): unknown => (
    Readable.toWeb(pipeline(reply, new Transform({ transform: (_chunk, _encoding, done) => done() }), () => {}))
  ),
}

for (const [name, substitute] of Object.entries(substitutes)) {
  t.test(`nor is a caller that leaves told as a failure where a hook puts in place ${name}`, async (t) => {
    const upstream = await startUpstream(t)
    const lines: string[] = []
    const app: FastifyInstance = Fastify({ logger: { stream: { write: (line: string) => { lines.push(line) } } } })
    t.teardown(() => app.close())
    const sending = new Signal<string>()
    app.addHook('onSend', async ({ url }, _reply, payload) => {
      if (!(payload instanceof Readable)) return payload
      const sent = substitute(payload)
      sending.push(url)
      return await sent
    })
    await app.register(llmGateway, gatewayOptions(upstream.url, { forward: { drain } }))
    const settled = watchSettled(app)
    upstream.queue({ fixture, split: [200], stallAt: 200 })
    const { request } = call(`${await listen(app)}/v1/chat/completions`, { headers, body })
    await sending.next()
    request.destroy()
    t.match(await settled.next(), { outcome: 'client_abort', abortedBy: 'client', errorCode: null })
    t.notMatch(lines.join(), /model request failed/)
  })
}

t.test('a hook that wants nothing of a body ends the upstream\'s work at once, before its own reply ends', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  let answer = (): void => {}
  const gate = new Promise<void>((resolve) => { answer = resolve })
  app.addHook('onSend', async (_request, _reply, payload) => {
    if (!(payload instanceof Readable)) return payload
    payload.destroy()
    await gate
    return 'replaced'
  })
  await app.register(llmGateway, gatewayOptions(upstream.url, { forward: { drain } }))
  upstream.queue({ fixture, split: [200], stallAt: 200 })
  const sent = { ...headers, 'content-type': 'application/json' }
  const reply = app.inject({ method: 'POST', url: '/v1/chat/completions', headers: sent, body })
  const { aborted } = await upstream.requests.next()
  t.equal(await Promise.race([aborted, wait(20_000, 'goes on', { ref: false })]), true)
  answer()
  t.equal((await reply).body, 'replaced')
})

t.test('a hook that waits until the upstream has ended gets the whole reply', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onSend', async (request, _reply, payload) => {
    while ((modelCallOf(request)?.exchange ?? null) !== null) await new Promise(setImmediate)
    return payload
  })
  await app.register(llmGateway, gatewayOptions(upstream.url))
  const url = await listen(app)
  upstream.queue({ fixture, split: 'events' })
  const { bytes } = await read(await call(`${url}/v1/chat/completions`, { headers, body }).reply)
  t.equal(sha256(bytes), sha256(replyFixture(fixture)))
})

t.test('a hook that waits while the upstream breaks off does not end the process', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onSend', async (request, _reply, payload) => {
    while ((modelCallOf(request)?.exchange ?? null) !== null) await new Promise(setImmediate)
    return payload
  })
  await app.register(llmGateway, gatewayOptions(upstream.url))
  const settled = watchSettled(app)
  const url = await listen(app)
  upstream.queue({ fixture, split: 'events', cutAt: 300 })
  const reply = await call(`${url}/v1/chat/completions`, { headers, body }).reply
  const { bytes } = await read(reply)
  t.match([reply.statusCode, JSON.parse(bytes.toString())], [502, { error: { code: 'upstream_reset' } }])
  t.match(await settled.next(), { outcome: 'truncated', abortedBy: 'upstream' })
})

const trailers: Readonly<Record<string, (app: FastifyInstance) => unknown>> = {
  'before there is a reply': (app) => app.addHook('onRequest', async (_request, reply) => {
    reply.trailer('x-host', (_reply, _payload, done) => done(null, 'yes'))
  }),
  'once a stream has ended': (app) => app.addHook('onSend', async (_request, reply, payload) => {
    reply.header('trailer', 'x-host')
    if (payload instanceof Readable) payload.on('end', () => reply.raw.addTrailers({ 'x-host': 'yes' }))
  }),
}

for (const [when, add] of Object.entries(trailers)) {
  t.test(`trailers that a hook of the host adds ${when} follow the last byte`, async (t) => {
    const upstream = await startUpstream(t)
    const app = Fastify()
    t.teardown(() => app.close())
    add(app)
    await app.register(llmGateway, gatewayOptions(upstream.url))
    const url = await listen(app)
    upstream.queue({ fixture, split: 'events' })
    const reply = await call(`${url}/v1/chat/completions`, { headers, body }).reply
    const { bytes } = await read(reply)
    t.equal(sha256(bytes), sha256(replyFixture(fixture)))
    t.equal(reply.trailers['x-host'], 'yes')
  })
}

t.test('a function of the host that throws over a reply ends this request and no other', async (t) => {
  const upstream = await startUpstream(t)
  const lines: string[] = []
  const app = Fastify({ logger: { level: 'error', stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  let times = 0
  function rewriteHeaders (headers: IncomingHttpHeaders): IncomingHttpHeaders {
    times += 1
    if (times === 1) throw new Error('not today')
    return headers
  }
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  await app.register(httpProxy, { upstream: upstream.url, ...proxyOptions(), replyOptions: { rewriteHeaders } })
  const settled = watchSettled(app)
  const url = await listen(app)
  upstream.queue({ fixture: 'chat_completions.json' })
  await t.rejects(call(`${url}/v1/chat/completions`, { headers, body: body.replace('true', 'false') }).reply)
  t.match(await settled.next(), { upstreamReply: { status: 200 } })
  t.match(lines.join(), /not today/)
  upstream.queue({ fixture: 'chat_completions.json' })
  t.equal((await read(await call(`${url}/v1/chat/completions`, { headers, body }).reply)).cut, false)
})

t.test('a hook that reads a stream before its head is written still sets headers', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url))
  app.addHook('onSend', async (_request, reply, payload) => {
    if (!(payload instanceof Readable)) return payload
    const packed = payload.pipe(new PassThrough())
    await new Promise(setImmediate)
    reply.header('x-packed', 'yes')
    return packed
  })
  let goOn = (): void => {}
  const heard = new Promise<void>((resolve) => { goOn = resolve })
  upstream.queue({ fixture, split: 'events', before: (write) => write === 0 ? heard : null })
  const { reply } = call(`${await listen(app)}/v1/chat/completions`, { headers, body })
  await upstream.requests.next()
  await wait(50)
  goOn()
  const { statusCode, headers: got } = await reply
  t.match({ statusCode, got }, { statusCode: 200, got: { 'x-packed': 'yes', 'content-type': /^text\/event-stream/ } })
  t.equal(sha256((await read(await reply)).bytes), sha256(replyFixture(fixture)))
})

t.test('a request id that the host has set on the raw reply is no sign that its head is ready', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onRequest', async (_request, reply) => { reply.raw.setHeader('x-request-id', 'of the host') })
  await app.register(llmGateway, gatewayOptions(upstream.url))
  app.addHook('onSend', async (_request, reply, payload) => {
    if (!(payload instanceof Readable)) return payload
    const packed = payload.pipe(new PassThrough())
    await new Promise(setImmediate)
    reply.header('x-packed', 'yes')
    return packed
  })
  let goOn = (): void => {}
  const heard = new Promise<void>((resolve) => { goOn = resolve })
  const given = { 'content-type': 'text/event-stream', 'x-request-id': 'of the upstream' }
  upstream.queue({ fixture, split: 'events', headers: given, before: (write) => write === 0 ? heard : null })
  const { reply } = call(`${await listen(app)}/v1/chat/completions`, { headers, body })
  await upstream.requests.next()
  await wait(50)
  goOn()
  t.match((await reply).headers, { 'x-packed': 'yes', 'x-request-id': 'of the upstream' })
  t.equal(sha256((await read(await reply)).bytes), sha256(replyFixture(fixture)))
})

t.test('a head goes out early over HTTP/2 where the host sets a header that there is none of there', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify({ http2: true })
  t.teardown(() => app.close())
  app.addHook('onRequest', async (_request, reply) => { reply.header('connection', 'keep-alive') })
  await app.register(llmGateway, gatewayOptions(upstream.url))
  upstream.queue({ fixture, stallAt: 0 })
  const client = connect(await app.listen({ host: '127.0.0.1', port: 0 }))
  t.teardown(() => client.destroy())
  const stream = client.request({ ':method': 'POST', ':path': '/v1/chat/completions', 'content-type': 'application/json', ...headers })
  stream.end(body)
  const [head] = await once(stream, 'response')
  t.match(head, { ':status': 200, 'x-request-id': /./ })
})

t.test('the head of a reply comes before its first byte, also through a stream of a hook\'s', async (t) => {
  const upstream = await startUpstream(t)
  for (const http2 of [false, true]) {
    // Its types know of no server over HTTP/2 without TLS.
    const app = Fastify({ http2 } as object)
    t.teardown(() => app.close())
    app.addHook('onSend', async ({ url }, _reply, payload) => {
      return payload instanceof Readable && url.endsWith('?hooked') ? payload.pipe(new PassThrough()) : payload
    })
    await app.register(llmGateway, gatewayOptions(upstream.url))
    const url = await listen(app)
    const session = http2 ? connect(url) : null
    t.teardown(() => session?.destroy())
    for (const path of ['/v1/chat/completions', '/v1/chat/completions?hooked']) {
      const heard = new Signal<boolean>()
      upstream.queue({ fixture, split: 'events', before: async (write) => { if (write === 0) await heard.next() } })
      const fields = { ':method': 'POST', ':path': path, 'content-type': 'application/json', ...headers }
      const reply: Readable = session === null ? await call(`${url}${path}`, { headers, body }).reply : session.request(fields).end(body)
      if (session !== null) await once(reply, 'response')
      heard.push(true)
      t.equal(sha256(Buffer.concat(await reply.toArray())), sha256(replyFixture(fixture)), `${path} ${String(http2)}`)
    }
  }
})
