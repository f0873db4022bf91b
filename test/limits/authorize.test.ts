import t from 'tap'
import { setup } from './setup.js'

t.test('a host may refuse, in the family\'s words', async (t) => {
  const { chat, upstream, url } = await setup(t, { limits: { authorize: () => ({ code: 'insufficient_quota' }) } })
  t.match(await chat(), { status: 403, json: { error: { code: 'insufficient_quota' } } })
  t.equal(upstream.seen.length, 0)
  t.match(await (await fetch(`${url}/metrics`)).text(), 'llm_gateway_limit_rejections_total{group="all",limit="balance"} 1')
})

t.test('a host may refuse what is no limit, and say when to come again', async (t) => {
  const { chat, url } = await setup(t, { limits: { authorize: async () => ({ code: 'access_denied' }) } })
  t.match(await chat(), { status: 403, json: { error: { code: 'access_denied' } } })
  t.notMatch(await (await fetch(`${url}/metrics`)).text(), /limit_rejections_total\{/)
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
  const { chat, upstream } = await setup(t, { limits: { authorize: () => { throw new Error('secret detail') } } })
  const answer = await chat()
  t.match(answer, { status: 503, headers: { 'retry-after': '1' }, json: { error: { code: 'limit_store_unavailable' } } })
  t.notMatch(JSON.stringify(answer), 'secret detail')
  t.equal(upstream.seen.length, 0)
})
