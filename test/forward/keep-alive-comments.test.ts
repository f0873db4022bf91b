/** Comments for callers whose upstream is silent within a stream of events. */
import { connect as connectH2 } from 'node:http2'
import { Readable } from 'node:stream'
import { mock } from 'node:test'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import { KeepAliveComments } from '../../plugins/forward/keep-alive-comments.js'
import { proxyOptions } from '../../plugins/forward/index.js'
import llmGateway from '../../plugins/index.js'
import { call, callersGone, gatewayOptions, listen, read, secret, startGateway } from '../helpers/gateway.js'
import { replyFixture, Signal, startUpstream, type Script } from '../helpers/upstream.js'

const body = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'
const fixture = 'chat_completions.include_usage.sse'
const events = replyFixture(fixture).toString()
const comment = ': keepalive\n\n'
const forward = { keepAliveCommentMs: 40 }

/** The reply stops before one of its pieces until it is told to go on. */
function silentBefore (piece: number, script: Script): { script: Script, goOn: () => void } {
  let goOn = (): void => {}
  const told = new Promise<void>((resolve) => { goOn = resolve })
  return { script: { ...script, before: async (write) => write === piece && await told }, goOn }
}

/** Reads until `count` comments came, goes on, and returns all that came. */
async function readPast (count: number, reply: AsyncIterable<unknown>, goOn: () => void): Promise<string> {
  let text = ''
  for await (const chunk of reply) {
    text += String(chunk)
    if (text.split(comment).length > count) goOn()
  }
  return text
}

const pieces: ReadonlyArray<readonly [name: string, piece: number]> = [['before the first event', 0], ['between two', 1]]
for (const [name, piece] of pieces) {
  t.test(`a caller gets comments while its upstream is silent ${name}, and its stream as it is otherwise`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await startGateway(t, upstream.url, { forward })
    const { script, goOn } = silentBefore(piece, { fixture, split: 'events' })
    upstream.queue(script)
    const text = await readPast(3, await call(`${await listen(app)}/v1/chat/completions`, { body }).reply, goOn)
    const first = text.indexOf(comment)
    t.equal(text.slice(0, first), events.split('\n\n').slice(0, piece).map((event) => `${event}\n\n`).join(''))
    t.equal(text.slice(first, first + 3 * comment.length), comment.repeat(3))
    t.equal(text.replaceAll(comment, ''), events)
    t.match(await settled.next(), { outcome: 'ok', usage: { tokens: { input: Number, output: Number } } })
  })
}

t.test('over HTTP/2, and on an adapted mount, too', async (t) => {
  const upstream = await startUpstream(t)
  // Its types know of no server over HTTP/2 without TLS.
  const app = Fastify({ http2: true } as object)
  t.teardown(async () => await app.close())
  await app.register(httpProxy, { ...proxyOptions(forward), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  const { script, goOn } = silentBefore(1, { fixture, split: 'events' })
  upstream.queue(script)
  const session = connectH2(await listen(app))
  t.teardown(() => session.destroy())
  const stream = session.request({
    ':method': 'POST', ':path': '/v1/chat/completions', authorization: `Bearer ${secret}`, 'content-type': 'application/json',
  })
  stream.end(body)
  const text = await readPast(2, stream, goOn)
  t.match(text, comment + comment)
  t.equal(text.replaceAll(comment, ''), events)
})

t.test('an event that has begun is not cut, nor is anything else than plain events', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, { forward })
  const url = `${await listen(app)}/v1/chat/completions`
  const scripts: readonly Script[] = [
    { fixture, split: [20] },
    { fixture, split: [20], encoding: 'gzip' },
    { fixture: 'chat_completions.json', split: [20] },
  ]
  for (const one of scripts) {
    const { script, goOn } = silentBefore(1, one)
    upstream.queue(script)
    const { reply } = call(url, { body })
    const message = await reply
    // Several times as long as until a comment.
    setTimeout(goOn, 250)
    t.notMatch((await read(message)).bytes.toString(), comment, JSON.stringify(one))
  }
})

t.test('a silence is no activity of the upstream: it still ends in time', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { ...forward, idleTimeoutMs: 300 } })
  upstream.queue({ fixture, stallAt: events.indexOf('\n\n') + 2 })
  const { bytes } = await read(await call(`${await listen(app)}/v1/chat/completions`, { body }).reply)
  t.match(bytes.toString(), /\n\n: keepalive\n\n[^]*"code":"upstream_timeout"/)
  t.match(await settled.next(), { outcome: 'timeout', abortedBy: 'upstream' })
})

t.test('without the option there are none', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const { script, goOn } = silentBefore(1, { fixture, split: 'events' })
  upstream.queue(script)
  const message = await call(`${await listen(app)}/v1/chat/completions`, { body }).reply
  setTimeout(goOn, 100)
  t.equal((await read(message)).bytes.toString(), events)
})

t.test('who takes nothing of what is there gets none behind it', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, { forward: { keepAliveCommentMs: 300 } })
  // More than all buffers on the way hold, and wherever it stops, no event is cut.
  upstream.queue({ headers: { 'content-type': 'text/event-stream' }, body: '\n'.repeat(20_000_000) })
  const message = await call(`${await listen(app)}/v1/chat/completions`, { body }).reply
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  t.notOk((await read(message)).bytes.includes(comment))
})

t.test('there is a comment in any time as long as the option says', (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  for (const afterMs of [1, 24, 26, 99]) {
    let count = 0
    const stream = { isOver: false, bytes: 0, comment: () => { count += 1 } }
    new KeepAliveComments(100).follow(stream)
    mock.timers.tick(afterMs)
    Object.assign(stream, { bytes: 1 })
    count = 0
    mock.timers.tick(100)
    t.equal(count, 1, `after ${afterMs} ms`)
    mock.timers.tick(100)
    t.equal(count, 2, `again after ${afterMs} ms`)
  }
  t.end()
})

t.test('a stream that is over is let go', (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  let looks = 0
  const over = { get isOver () { return ++looks > 0 }, bytes: 0, comment: () => {} }
  new KeepAliveComments(100).follow(over)
  mock.timers.tick(1_000)
  t.equal(looks, 1)
  t.end()
})

t.test('a stream that ends while a hook is busy with what it has read is whole', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, { forward })
  app.addHook('onSend', async (_request, _reply, payload) => {
    let text = ''
    for await (const chunk of Object(payload)) {
      text += String(chunk)
      if (text.includes('[DONE]')) upstream.seen[0]?.raw.res.end()
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    return text
  })
  upstream.queue({ fixture, stallAt: Buffer.byteLength(events), headers: { 'content-type': 'text/event-stream' } })
  const { bytes } = await read(await call(`${await listen(app)}/v1/chat/completions`, { body }).reply)
  t.equal(bytes.toString().replaceAll(comment, ''), events)
})

t.test('the stream of a caller that has left gets none, even if a hook keeps it', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, { forward })
  const bodies = new Signal<Readable>()
  app.addHook('onSend', async (_request, _reply, payload) => {
    if (payload instanceof Readable) bodies.push(payload)
    return await new Promise(() => {})
  })
  const { script, goOn } = silentBefore(0, { fixture, split: 'events' })
  upstream.queue(script)
  const { request } = call(`${await listen(app)}/v1/chat/completions`, { body })
  const stream = await bodies.next()
  await new Promise((resolve) => setTimeout(resolve, 200))
  t.ok(stream.readableLength <= comment.length, 'what is not read has none behind it')
  request.destroy()
  await callersGone(app)
  stream.read()
  await new Promise((resolve) => setTimeout(resolve, 200))
  t.equal(stream.readableLength, 0)
  goOn()
})

t.test("clients of Gemini's do not skip them, and get none", async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, { forward })
  const { script, goOn } = silentBefore(1, { fixture: 'generate_content.stream.sse', split: 'events' })
  upstream.queue(script)
  const url = `${await listen(app)}/v1beta/models/m:streamGenerateContent?alt=sse`
  const message = await call(url, { body: '{"contents":[{"parts":[{"text":"hi"}]}]}', headers: { 'x-goog-api-key': secret } }).reply
  setTimeout(goOn, 250)
  t.equal((await read(message)).bytes.toString(), replyFixture('generate_content.stream.sse').toString())
})
