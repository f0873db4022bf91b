import { once } from 'node:events'
import Fastify from 'fastify'
import t from 'tap'
import { errors } from '../../../plugins/errors/index.js'
import { gatewayOf, joinGateway } from '../../../plugins/core/gateway.js'
import { releaseHold } from '../../../plugins/core/call/request-life.js'
import { paths } from '../../../plugins/paths/index.js'
import { modelCallOf, type ModelCall } from '../../../plugins/core/call/model-call.js'
import { call, listen, secret, startGateway } from '../../helpers/gateway.js'
import { replyFixture, Signal, startUpstream } from '../../helpers/upstream.js'
import type { Settler } from '../../../plugins/core/call/settlement.js'

const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const streamed = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'

t.test('every model request settles once, however it ends', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { drain: { maxMs: 0 } } })
  const url = await listen(app)
  let active = 0
  const { recorder } = gatewayOf(app)
  const { started, settled: ended } = recorder
  recorder.started = (llm) => { active += 1; started(llm) }
  recorder.settled = (llm) => { active -= 1; ended(llm) }
  const post = { method: 'POST', url: '/v1/chat/completions', headers, payload: chat } as const

  await app.inject(post)
  t.match(await settled.next(), { outcome: 'ok', status: 200, abortedBy: null, errorCode: null })
  await app.inject({ ...post, headers: {} })
  t.match(await settled.next(), { outcome: 'auth_error', status: 401, errorCode: 'missing_api_key' })
  await app.inject({ ...post, payload: '{}' })
  t.match(await settled.next(), { outcome: 'client_error', status: 400 })
  upstream.queue({ status: 500, body: { error: {} } })
  await app.inject(post)
  t.match(await settled.next(), { outcome: 'upstream_error', status: 500, upstreamReply: { status: 500 } })
  upstream.queue({ status: 404, body: { error: {} } })
  await app.inject(post)
  t.match(await settled.next(), { outcome: 'client_error', status: 404, upstreamReply: { status: 404 } })

  upstream.queue({ stallAt: 'headers' })
  const early = call(`${url}/v1/v1/chat/completions`, { body: chat })
  await upstream.arrivals.next()
  for (let i = upstream.arrivals.size; i > 0; i -= 1) await upstream.arrivals.next()
  while (upstream.seen.length < 4) await new Promise(setImmediate)
  early.request.destroy()
  t.match(await settled.next(), { outcome: 'client_abort', status: 0, abortedBy: 'client' })

  upstream.queue({
    fixture: 'chat_completions.include_usage.sse', stallAt: replyFixture('chat_completions.include_usage.sse').indexOf('\n\n') + 2,
  })
  const late = call(`${url}/v1/chat/completions`, { body: streamed })
  await once(await late.reply, 'data')
  late.request.destroy()
  t.match(await settled.next(), { outcome: 'client_abort', status: 200, abortedBy: 'client' })
  await new Promise(setImmediate)
  t.equal(settled.size, 0)
  t.equal(active, 0)
})

t.test('the status is what was sent, also where a layer of the host\'s tells otherwise', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  // As `@fastify/express` does for each reply that Express did not send.
  app.addHook('onRequest', async (_request, reply) => { Object.defineProperty(reply.raw, 'headersSent', { value: false }) })
  upstream.queue({ status: 429, body: { error: {} } })
  await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
  t.match(await settled.next(), { outcome: 'client_error', status: 429 })
})

t.test('a request whose caller left before anybody looked at it settles all the same', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const gateway = joinGateway(app)
  const settled: ModelCall[] = []
  gateway.settlement.onSettled((llm) => settled.push(llm))
  let reached = (): void => {}
  let release = (): void => {}
  const waiting = new Promise<void>((resolve) => { reached = resolve })
  app.addHook('onRequest', async (_, reply) => {
    reached()
    await once(reply.raw, 'close')
    release()
  })
  const gone = new Promise<void>((resolve) => { release = resolve })
  await app.register(paths)
  await app.register(errors)
  app.post('/v1/messages', async () => ({}))
  const { request } = call(`${await listen(app)}/v1/messages`, { body: '{}' })
  await waiting
  request.destroy()
  await gone
  while (settled.length === 0) await new Promise(setImmediate)
  await new Promise(setImmediate)
  t.match(settled, [{ outcome: 'client_abort', status: 0, abortedBy: 'client' }])
  t.equal(settled.length, 1)
})

t.test('a request whose caller left before its second pass through the router is not begun again', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const gateway = joinGateway(app)
  const told: string[] = []
  gateway.recorder = { ...gateway.recorder, started: () => told.push('started'), settled: () => told.push('settled') }
  // Begins it: it stands before the hook that waits.
  await app.register(errors)
  const passes = new Signal<object>()
  app.addHook('onRequest', async (request, { raw }) => {
    passes.push(request)
    if (!raw.destroyed) await once(raw, 'close')
  })
  await app.register(paths)
  app.post('/v1/messages', async () => ({}))
  const { request } = call(`${await listen(app)}/v1/v1/messages`, { body: '{}' })
  await passes.next()
  request.destroy()
  await passes.next()
  t.strictSame(told, ['started', 'settled'])
})

t.test('a host\'s own failures on a model route have their outcome', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const gateway = joinGateway(app)
  const settled: ModelCall[] = []
  gateway.settlement.onSettled((llm) => settled.push(llm))
  await app.register(paths)
  app.post('/v1/messages', async (request, reply) => {
    const call = modelCallOf(request)
    if (request.headers['x-cut'] !== undefined && call !== null) call.abortedBy = 'upstream'
    return reply.code(Number(request.headers['x-status'])).send({})
  })
  for (const [status, outcome] of [[200, 'ok'], [409, 'client_error'], [501, 'gateway_error']] as const) {
    await app.inject({ method: 'POST', url: '/v1/messages', headers: { 'x-status': String(status) } })
    t.match(settled.pop(), { outcome, status })
  }
  await app.inject({ method: 'POST', url: '/v1/messages', headers: { 'x-status': '200', 'x-cut': '1' } })
  t.match(settled.pop(), { outcome: 'truncated' })
})

t.test('the caller\'s secret is kept for an upstream that it is to travel on to, out of sight', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { upstreams: { main: { url: upstream.url, credential: 'forward' } } })
  await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
  t.equal((await upstream.requests.next()).headers.authorization, `Bearer ${secret}`)
  const llm = await settled.next()
  t.equal(llm.auth.secret, secret)
  t.notOk(JSON.stringify(Object.entries(llm)).includes(secret))
})

t.test('what is settled is not settled again, whoever lets go of it once more', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const seen: Array<Parameters<Settler>> = []
  gatewayOf(app).settlement.onSettled((...settled) => seen.push(settled))
  await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
  for (const [llm, request] of [...seen]) releaseHold(gatewayOf(app), request, llm)
  t.equal(seen.length, 1)
})
