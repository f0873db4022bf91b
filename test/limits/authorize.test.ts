import Fastify from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { auth, forward, limits, paths, upstreams } from '../../plugins/index.js'
import { call, everyProtocol, secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { messages, setup } from './setup.js'

t.test('a host may refuse, in the family\'s words', async (t) => {
  const { chat, upstream, url } = await setup(t, { limits: { authorize: () => ({ code: 'insufficient_quota' }) } })
  t.match(await chat(), { status: 403, json: { error: { code: 'insufficient_quota' } } })
  t.equal(upstream.seen.length, 0)
  t.match(await (await fetch(`${url}/metrics`)).text(), 'llm_gateway_limit_rejections_total{group="all",limit="balance"} 1')
  const other = await setup(t, { limits: { authorize: () => ({ code: 'budget_exceeded' }), balanceStatus: 429 } })
  t.match(await other.chat(), { status: 429, json: { error: { code: 'budget_exceeded' } } })
})

t.test('a host may refuse what is no limit, and say when to come again', async (t) => {
  const { chat, url } = await setup(t, { limits: { authorize: async () => ({ code: 'access_denied' }) } })
  t.match(await chat(), { status: 403, json: { error: { code: 'access_denied' } } })
  t.notMatch(await (await fetch(`${url}/metrics`)).text(), /limit_rejections_total\{.*\} [1-9]/)
  const slow = await setup(t, { limits: { authorize: async () => ({ code: 'request_rate_exceeded', retryAfterMs: 7_000 }) } })
  t.match(await slow.chat(), { status: 429, headers: { 'retry-after': '7' } })
})

t.test('a host may join the decision, or replace it', async (t) => {
  const asked: Array<string | undefined> = []
  const joined = await setup(t, { group: { balance: 0 }, limits: { authorize: async ({ llm }) => { asked.push(llm?.key?.id) } } })
  t.match(await joined.chat(), { status: 403 })
  t.same(asked, ['caller'])
  const replaced = await setup(t, { group: { balance: 0 }, limits: { authorize: () => 'admit' } })
  t.match(await replaced.chat(), { status: 200 })
})

t.test('a host that fails lets nothing pass', async (t) => {
  const { app, chat, upstream } = await setup(t, { limits: { authorize: () => { throw new Error('secret detail') } } })
  const answer = await chat()
  t.match(answer, { status: 503, headers: { 'retry-after': '1' }, json: { error: { code: 'limit_store_unavailable' } } })
  t.notMatch(JSON.stringify(answer), 'secret detail')
  t.match((await app.inject('/metrics')).body, 'llm_gateway_limit_rejections_total{group="all",limit="store"} 1')
  t.equal(upstream.seen.length, 0)
})

t.test('a host is asked once about a request whose path is repaired behind the limits', async (t) => {
  const upstream = await startUpstream(t)
  let asked = 0
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(auth, { groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }] })
  await app.register(limits, { authorize: () => { asked += 1 } })
  await app.register(paths)
  await app.register(upstreams, { upstreams: { main: { url: upstream.url, credential: 'x' } } })
  await app.register(forward)
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const reply = await app.inject({ method: 'POST', url: '/v1/v1/chat/completions', headers, payload: { model: 'm', messages } })
  t.equal(reply.statusCode, 200)
  t.equal(asked, 1)
})

t.test('a large request whose path is repaired behind the limits takes one place', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  const groups = { all: { protocols: everyProtocol, limits: { requestsPerMinute: 1 } } }
  await app.register(auth, { groups, keys: [{ id: 'caller', group: 'all', secret }] })
  await app.register(limits)
  await app.register(paths)
  await app.register(upstreams, { upstreams: { main: { url: upstream.url, credential: 'x' } } })
  await app.register(forward)
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const payload = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(70_000) }] }
  const post = async (url: string): Promise<number> => (await app.inject({ method: 'POST', url, headers, payload })).statusCode
  t.same([await post('/v1/v1/chat/completions'), await post('/v1/chat/completions')], [200, 429])
})

t.test('a refusal that comes when its caller has left is none', async (t) => {
  let arrived = (): void => {}
  const asked = new Promise<void>((resolve) => { arrived = resolve })
  let answer = (): void => {}
  const wait = new Promise<void>((resolve) => { answer = resolve })
  const authorize = async () => {
    arrived()
    await wait
    return { code: 'insufficient_quota' as const }
  }
  const { app, url } = await setup(t, { limits: { authorize } })
  const { request } = call(`${url}/v1/chat/completions`, { body: JSON.stringify({ model: 'm', messages }) })
  await asked
  const settled = new Promise<void>((resolve) => gatewayOf(app).settlement.onSettled(() => resolve()))
  request.destroy()
  await settled
  answer()
  for (let i = 0; i < 5; i += 1) await new Promise(setImmediate)
  t.notMatch((await app.inject('/metrics')).body, /limit_rejections_total\{.*\} [1-9]/)
})
