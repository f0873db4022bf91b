/** A host that speaks HTTP/2: a caller that leaves resets its stream, and no socket closes. */
import { once } from 'node:events'
import { connect, constants, type ClientHttp2Stream } from 'node:http2'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import llmGateway from '../plugins/index.js'
import { memoryBalances } from '../plugins/state/index.js'
import { everyProtocol, gatewayOptions, secret, watchSettled } from './helpers/gateway.js'
import { Signal, startUpstream, usageOf } from './helpers/upstream.js'

const fixture = 'chat_completions.include_usage.sse'
const body = JSON.stringify({
  model: 'm', stream: true, stream_options: { include_usage: true }, messages: [{ role: 'user', content: 'hi' }],
})

t.test('each request settles once, and as it ended', async (t) => {
  const upstream = await startUpstream(t)
  const balances = memoryBalances()
  const app: FastifyInstance = Object(Fastify({ http2: true }))
  const arrived = new Signal<() => void>()
  let waits = false
  app.addHook('onRequest', async () => {
    if (waits) await new Promise<void>((resolve) => arrived.push(resolve))
  })
  const groups = { all: { protocols: everyProtocol, limits: { balance: 1_000_000, concurrency: 5 } } }
  await app.register(llmGateway, gatewayOptions(upstream.url, { groups, limits: { balances }, forward: { drain: { maxMs: 0 } } }))
  const settled = watchSettled(app)
  const client = connect(await app.listen({ port: 0, host: '127.0.0.1' }))
  t.teardown(async () => {
    client.destroy()
    await app.close()
  })
  const headers = {
    ':method': 'POST', ':path': '/v1/chat/completions', authorization: `Bearer ${secret}`, 'content-type': 'application/json',
  }
  const ask = (): ClientHttp2Stream => client.request(headers).on('error', () => {}).end(body)

  upstream.queue({ fixture })
  await once(ask().resume(), 'close')
  t.match(await settled.next(), { outcome: 'ok', status: 200, usage: { tokens: usageOf[fixture]?.leaves } })
  await upstream.requests.next()

  upstream.queue({ fixture, stallAt: 300 })
  const within = ask()
  await once(within, 'data')
  within.close(constants.NGHTTP2_CANCEL)
  t.match(await settled.next(), { outcome: 'client_abort', status: 200, usage: { missing: 'client_abort' } })
  await upstream.requests.next()

  upstream.queue({ stallAt: 'headers' })
  const before = ask()
  await upstream.requests.next()
  before.close(constants.NGHTTP2_CANCEL)
  t.match(await settled.next(), { outcome: 'client_abort', status: 0, usage: { missing: 'client_abort' } })

  waits = true
  const unread = ask()
  const goOn = await arrived.next()
  unread.close(constants.NGHTTP2_CANCEL)
  // Both ends of a session are told of a reset in order: what is asked now comes after it.
  ask().resume()
  const goOnNext = await arrived.next()
  goOnNext()
  waits = false
  t.match(await settled.next(), { outcome: 'ok' })
  goOn()
  t.match(await settled.next(), { outcome: 'client_abort', status: 0, usage: { missing: null } }, 'it was gone when it began')
  t.match(balances.read('all'), { active: 0, held: 0 })
})
