/** Several requests on one connection, each sent before the reply to the one before it is there (RFC 9112 9.3.2). */
import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../../plugins/index.js'
import { callersGone, everyProtocol, gatewayOptions, listen, secret, watchSettled } from '../helpers/gateway.js'
import { replyFixture, Signal, startUpstream, usageOf } from '../helpers/upstream.js'
import { Wire } from '../helpers/wire.js'
import { memoryBalances } from '../../plugins/state/index.js'
import { messages, setup } from './setup.js'

const group = { balance: 1_000_000, concurrency: 30 }
const fixture = 'chat_completions.include_usage.sse'
const stalled = { stallAt: 'headers' } as const

function chat (more: object = {}): string {
  const body = JSON.stringify({ model: 'm', messages, max_tokens: 500, ...more })
  const head = [
    'POST /v1/chat/completions HTTP/1.1', 'host: a', `authorization: Bearer ${secret}`, 'content-type: application/json',
    `content-length: ${body.length}`,
  ]
  return [...head, '', body].join('\r\n')
}

const streamed = chat({ stream: true, stream_options: { include_usage: true } })

function bodyBytes (request: string): number {
  return request.length - request.indexOf('\r\n\r\n') - 4
}

t.test('a caller that leaves ends all of them', async (t) => {
  const { url, upstream, quiet, records } = await setup(t, { group, drain: { maxMs: 0 } })
  const count = 15
  // As Node gives them where a connection has a listener for each of many.
  const warnings: Error[] = []
  const warned = (warning: Error): void => { warnings.push(warning) }
  process.on('warning', warned)
  t.teardown(() => process.off('warning', warned))
  const all = Array.from({ length: count })
  upstream.queue(...all.map(() => stalled))
  const wire = new Wire(url)
  wire.send(chat().repeat(count))
  await Promise.all(all.map(async () => await upstream.requests.next()))
  wire.destroy()
  await Promise.all(all.map(async () => await upstream.aborts.next()))
  t.match(await quiet(), { spent: Math.ceil(bodyBytes(chat()) / 4) * count })
  t.match(await records(), all.map(() => ({ outcome: 'client_abort' })))
  t.strictSame(warnings, [])
})

t.test('a caller that leaves in the middle of a later reply has that one read on for its usage', async (t) => {
  const { app, url, upstream } = await setup(t, { group, drain: { maxMs: 60_000 } })
  const settled = watchSettled(app)
  let go = (): void => {}
  const gone = new Promise<void>((resolve) => { go = resolve })
  upstream.queue({}, { fixture, split: [200], before: async (write) => { if (write === 1) await gone } })
  const wire = new Wire(url)
  wire.send(chat() + streamed)
  t.equal((await wire.reply()).status, 200)
  t.match(await settled.next(), { outcome: 'ok' })
  await upstream.requests.next()
  await upstream.requests.next()
  while (wire.unread === 0) await new Promise(setImmediate)
  wire.destroy()
  await callersGone(app)
  go()
  t.match(await settled.next(), { outcome: 'client_abort', usage: { tokens: usageOf[fixture]?.leaves, partial: false } })
})

t.test('a stream that waits for its turn comes whole', async (t) => {
  const { url, upstream, quiet } = await setup(t, { group })
  const event = `data: {"choices":[{"index":0,"delta":{"content":"${'a'.repeat(4_000)}"}}]}\n\n`
  const count = 100
  let answer = (): void => {}
  const first = new Promise<void>((resolve) => { answer = resolve })
  const script = {
    headers: { 'content-type': 'text/event-stream' }, body: event.repeat(count) + replyFixture(fixture).toString(), split: 'events',
  } as const
  upstream.queue({ body: '{}', before: async () => await first }, script)
  const wire = new Wire(url)
  wire.send(chat() + streamed)
  await upstream.requests.next()
  await upstream.requests.next()
  answer()
  t.equal((await wire.reply()).body, '{}')
  const { body } = await wire.reply()
  t.equal(body.split('a'.repeat(4_000)).length - 1, count)
  t.match(body, /\[DONE\]/)
  wire.destroy()
  await quiet()
})

t.test('one that begins when its connection is gone has nothing sent for it', async (t) => {
  const upstream = await startUpstream(t)
  const balances = memoryBalances()
  const app = Fastify()
  t.teardown(() => app.close())
  let go = (): void => {}
  const gone = new Promise<void>((resolve) => { go = resolve })
  const arrived = new Signal<unknown>()
  app.addHook('onRequest', async (request) => {
    arrived.push(request)
    await gone
  })
  await app.register(
    llmGateway, gatewayOptions(upstream.url, { groups: { all: { protocols: everyProtocol, limits: group } }, limits: { balances } })
  )
  const settled = watchSettled(app)
  const wire = new Wire(await listen(app))
  wire.send(chat().repeat(2))
  await arrived.next()
  await arrived.next()
  wire.destroy()
  await callersGone(app)
  go()
  t.match([await settled.next(), await settled.next()], [{ outcome: 'client_abort' }, { outcome: 'client_abort' }])
  t.match(balances.read('all'), { spent: 0, held: 0, active: 0 })
  t.equal(upstream.seen.length, 0)
})
