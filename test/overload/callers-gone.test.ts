/** Callers that leave before their request has its place among those that run. */
import { once } from 'node:events'
import { connect, constants, type ClientHttp2Stream } from 'node:http2'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import llmGateway, { auth, errors, forward, overload, upstreams, type LlmGatewayOptions } from '../../plugins/index.js'
import { memoryBalances } from '../../plugins/state/index.js'
import { call, everyProtocol, gatewayOptions, listen, read, secret, watchSettled } from '../helpers/gateway.js'
import { Signal, startUpstream } from '../helpers/upstream.js'

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const oneAtATime = { maxActive: 1, maxLoopDelayMs: 0 }

interface Http2Gateway {
  readonly settled: Signal<ModelCall>
  readonly ask: (key: string) => ClientHttp2Stream
}

/** `reached` is called for each request that comes as far as a hook after the gateway's. */
async function startHttp2 (t: Test, reached: () => void, options: Partial<LlmGatewayOptions>): Promise<Http2Gateway> {
  const upstream = await startUpstream(t)
  const app: FastifyInstance = Object(Fastify({ http2: true }))
  await app.register(llmGateway, gatewayOptions(upstream.url, options))
  app.addHook('onRequest', async () => reached())
  const settled = watchSettled(app)
  const client = connect(await app.listen({ port: 0, host: '127.0.0.1' }))
  t.teardown(async () => {
    client.destroy()
    await app.close()
  })
  const head = { ':method': 'POST', ':path': '/v1/chat/completions', 'content-type': 'application/json' }
  return { settled, ask: (key) => client.request({ ...head, authorization: `Bearer ${key}` }).on('error', () => {}).end(body) }
}

async function statusOf (stream: ClientHttp2Stream): Promise<unknown> {
  const [head] = await once(stream.resume(), 'response')
  return head[':status']
}

t.test('over HTTP/2, who leaves while its key is looked up takes no place, and goes no further', async (t) => {
  const asked = new Signal<() => void>()
  const lookup = async (key: string): Promise<{ id: string, group: string }> => {
    if (key === 'slow') await new Promise<void>((resolve) => asked.push(resolve))
    return { id: 'caller', group: 'all' }
  }
  let reached = 0
  const { settled, ask } = await startHttp2(t, () => { reached += 1 }, { overload: oneAtATime, keys: [], lookup })
  const gone = ask('slow')
  const answer = await asked.next()
  gone.close(constants.NGHTTP2_CANCEL)
  t.match(await settled.next(), { outcome: 'client_abort', status: 0 })
  answer()
  t.equal(await statusOf(ask('quick')), 200)
  t.equal(reached, 1)
})

t.test('over HTTP/2, who leaves while its limits are asked goes no further', async (t) => {
  const asked = new Signal<() => void>()
  const memory = memoryBalances()
  let waits = true
  const hold: typeof memory.hold = async (ask) => {
    if (waits) await new Promise<void>((resolve) => asked.push(resolve))
    return memory.hold(ask)
  }
  const groups = { all: { protocols: everyProtocol, limits: { balance: 1_000_000 } } }
  let reached = 0
  const { settled, ask } = await startHttp2(t, () => { reached += 1 }, { groups, limits: { balances: { ...memory, hold } } })
  const gone = ask(secret)
  const answer = await asked.next()
  gone.close(constants.NGHTTP2_CANCEL)
  t.match(await settled.next(), { outcome: 'client_abort', status: 0 })
  waits = false
  answer()
  t.equal(await statusOf(ask(secret)), 200)
  t.equal(reached, 1)
})

t.test('who leaves while a hook of the host waits takes no place', async (t) => {
  const upstream = await startUpstream(t)
  const asked = new Signal<() => void>()
  let waits = true
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(errors)
  await app.register(auth, { groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }] })
  await app.register(upstreams, { upstreams: { main: { url: upstream.url } } })
  app.addHook('onRequest', async () => {
    if (waits) await new Promise<void>((resolve) => asked.push(resolve))
  })
  await app.register(overload, oneAtATime)
  const passed = new Signal<unknown>()
  app.addHook('onRequest', async ({ id }) => { passed.push(id) })
  await app.register(forward)
  const settled = watchSettled(app)
  const url = `${await listen(app)}/v1/chat/completions`
  const { request } = call(url, { body })
  const goOn = await asked.next()
  request.destroy()
  t.match(await settled.next(), { outcome: 'client_abort' })
  waits = false
  goOn()
  await passed.next()
  const reply = await call(url, { body }).reply
  t.equal(reply.statusCode, 200)
  await read(reply)
})
