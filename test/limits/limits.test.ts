import t from 'tap'
import { limitError } from '../../plugins/limits/refusal.js'
import { openai } from '../../plugins/protocols/family-openai.js'
import { memoryBalances, type Balances } from '../../plugins/state/index.js'
import { call, read, secret } from '../helpers/gateway.js'
import { usageOf } from '../helpers/upstream.js'
import { messages, post, setup } from './setup.js'

function total (fixture: string): number {
  return Object.values(usageOf[fixture]?.leaves ?? {}).reduce((sum, tokens) => sum + tokens, 0)
}

const chatTokens = total('chat_completions.json')

const families = [
  {
    path: '/v1/chat/completions',
    headers: { authorization: `Bearer ${secret}` },
    body: { model: 'm', messages },
    rate: { 'x-ratelimit-limit-requests': '1', 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': /^\d+s$/ },
    balance: { error: { code: 'insufficient_quota', type: 'insufficient_quota' } },
  },
  {
    path: '/v1/messages',
    headers: { authorization: '', 'x-api-key': secret, 'anthropic-version': '2023-06-01' },
    body: { model: 'm', max_tokens: 9, messages },
    rate: {
      'anthropic-ratelimit-requests-limit': '1',
      'anthropic-ratelimit-requests-remaining': '0',
      'anthropic-ratelimit-requests-reset': /^\d{4}-.*Z$/,
    },
    balance: { error: { type: 'billing_error' } },
  },
  {
    path: '/v1beta/models/m:generateContent',
    headers: { authorization: '', 'x-goog-api-key': secret },
    body: { contents: [{ parts: [{ text: 'hi' }] }] },
    rate: {},
    balance: { error: { status: 'PERMISSION_DENIED' } },
  },
]

t.test('a spent balance is refused in every family, before the body is read', async (t) => {
  for (const { path, headers, body, balance } of families) {
    const { url, upstream } = await setup(t, { key: { balance: 0 } })
    const answer = await post(url + path, body, headers)
    t.match(answer, { status: 403, headers: { 'x-should-retry': 'false' }, json: balance }, path)
    t.equal(upstream.seen.length, 0)
  }
})

t.test('the status of a spent balance is an option', async (t) => {
  for (const balanceStatus of [402, 429] as const) {
    const { chat } = await setup(t, { group: { balance: 0 }, limits: { balanceStatus } })
    t.match(await chat(), { status: balanceStatus, json: { error: { code: 'insufficient_quota' } } })
  }
})

t.test('a spent balance that is 429 has the word that Google has for 429', async (t) => {
  for (const { path, headers, body } of families.filter(({ path }) => path.includes('v1beta'))) {
    const { url } = await setup(t, { key: { balance: 0 }, limits: { balanceStatus: 429 } })
    t.match(await post(url + path, body, headers), { status: 429, json: { error: { code: 429, status: 'RESOURCE_EXHAUSTED' } } })
  }
})

t.test('a rate is refused with the headers that each family knows', async (t) => {
  for (const { path, headers, body, rate } of families) {
    const { url } = await setup(t, { group: { requestsPerMinute: 1 } })
    t.equal((await post(url + path, body, headers)).status, 200)
    const { status, headers: given, json } = await post(url + path, body, headers)
    t.equal(status, 429)
    t.match(given, { 'retry-after': /^(5\d|60)$/, ...rate }, path)
    t.equal(given['x-should-retry'], undefined)
    if (path.includes('v1beta')) t.match(json, { error: { details: [{}, { '@type': /RetryInfo$/, retryDelay: /^\d+s$/ }] } })
  }
})

t.test('a minute that filled up in one second is told as a wait that clients follow, and its end as it is', async (t) => {
  const refused = { ok: false, limit: 'requests', scope: 'key', allowed: 1, free: 0, retryAfterMs: 60_900 } as const
  const error = limitError(refused, openai, 403, 0)
  t.equal(error.retryAfterMs, 60_000)
  t.match(error.headers, { 'x-ratelimit-reset-requests': '61s' })
  t.equal(limitError({ ...refused, retryAfterMs: 59_100 }, openai, 403, 0).retryAfterMs, 59_100)
})

t.test('what was held is replaced by the real tokens, of key and group', async (t) => {
  const key = { tokensPerMinute: 100_000, balance: 100_000 }
  const { chat, account, quiet, records } = await setup(t, { group: { balance: 100_000 }, key })
  t.equal((await chat({ max_tokens: 500 })).status, 200)
  const group = await quiet()
  t.match(group, { spent: chatTokens, held: 0, active: 0, requests: 1, tokens: chatTokens })
  t.match(await account('caller'), { spent: chatTokens, tokens: chatTokens })
  const [record, ...more] = await records()
  t.match(record, {
    key: 'caller',
    group: 'all',
    protocol: 'chat_completions',
    outcome: 'ok',
    charged: chatTokens,
    late: [],
    ...usageOf['chat_completions.json']?.leaves,
  })
  t.equal(more.length, 0)
})

t.test('a request holds its size and the output that it asks for', async (t) => {
  const cases = [
    { ask: { max_tokens: 10 }, output: 10 },
    { ask: { max_completion_tokens: 20, max_tokens: 10 }, output: 20 },
    { ask: { max_completion_tokens: 1, max_tokens: 10 }, output: 10 },
    { ask: { max_tokens: 10, n: 3 }, output: 30 },
    { ask: { max_tokens: 999_999 }, output: 100 },
    { ask: { max_tokens: null }, output: 100 },
    { ask: { model: 'other' }, output: 70 },
  ]
  for (const { ask, output } of cases) {
    const { chat, upstream, account, quiet } = await setup(t, {
      group: { balance: 1_000 }, limits: { maxOutputTokens: { known: 100, '*': 70 } },
    })
    let held = 0
    upstream.queue({ before: async () => { held = (await account()).held } })
    await chat({ model: 'known', ...ask })
    await quiet()
    const { body } = await upstream.requests.next()
    t.equal(held, Math.ceil(body.length / 4) + output, JSON.stringify(ask))
  }
})

t.test('what is not metered holds no tokens', async (t) => {
  const { url, upstream } = await setup(t, { group: { tokensPerMinute: 10 } })
  upstream.queue({ body: { input_tokens: 500 } })
  const counted = await fetch(`${url}/v1/messages/count_tokens`, {
    method: 'POST',
    headers: { 'x-api-key': secret, 'anthropic-version': '2023-06-01', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(2_000) }] }),
  })
  t.equal(counted.status, 200)
})

t.test('a request holds the output of the largest model that may take the place of the first', async (t) => {
  const { chat, upstream } = await setup(t, { group: { balance: 5_000 }, limits: { maxOutputTokens: { small: 100, large: 100_000 } } })
  t.match(await chat({ model: 'small', max_tokens: 50_000 }), { status: 200 })
  t.match(await chat({ model: 'small', max_tokens: 50_000, models: ['small', 'large'] }), { status: 403 })
  t.equal(upstream.seen.length, 1)
})

t.test('images in a body do not count as text', async (t) => {
  const { chat, upstream, account } = await setup(t, { group: { balance: 1_000 }, limits: { maxInputTokens: 50 } })
  let seen = 0
  upstream.queue({ before: async () => { seen = (await account()).held } })
  await chat({ max_tokens: 10, messages: [{ role: 'user', content: 'x'.repeat(9_000) }] })
  t.equal(seen, 60)
})

t.test('a hold that does not fit is refused, and its place is free again', async (t) => {
  const { chat, quiet, upstream, records } = await setup(t, { group: { balance: 60, concurrency: 1, tokensPerMinute: 1_000 } })
  t.match(await chat({ max_tokens: 100 }), { status: 403 })
  t.match(await quiet(), { spent: 0, held: 0, active: 0 })
  t.match(await chat({ max_tokens: 10 }), { status: 200 })
  await quiet()
  t.equal(upstream.seen.length, 1)
  t.equal((await records()).length, 1, 'what never left has no record')
})

t.test('what was refused is not given back: the rest of a balance is what is left of it', async (t) => {
  const { url, chat, quiet } = await setup(t, { group: { balance: 60 } })
  for (let i = 0; i < 3; i += 1) t.match(await chat({ max_tokens: 1_000 }), { status: 403 })
  await quiet()
  t.match(await (await fetch(`${url}/metrics`)).text(), /balance_remaining_ratio\{group="all"\} 1\n/)
})

t.test('a process that was started after a balance was spent tells that nothing is left', async (t) => {
  for (const [limits, told] of [
    [{ group: { balance: 60 } }, true], [{ key: { balance: 60 }, group: { concurrency: 9 } }, false],
  ] as const) {
    const balances = memoryBalances()
    await balances.settle({ id: 'before', group: 'all', key: 'caller', tokens: 60, late: ['group', 'key'] })
    const { url, chat } = await setup(t, { ...limits, limits: { balances } })
    t.match(await chat(), { status: 403 })
    const text = await (await fetch(`${url}/metrics`)).text()
    t.equal(/balance_remaining_ratio\{group="all"\} 0\n/.test(text), told)
  }
})

t.test('tokens a minute are refused with their own headers', async (t) => {
  const { chat } = await setup(t, { key: { tokensPerMinute: 60 } })
  const never = await chat({ max_tokens: 100 })
  t.match(never, { status: 429, headers: { 'x-ratelimit-limit-tokens': '60', 'x-ratelimit-remaining-tokens': '60' } })
  t.equal(never.headers['x-should-retry'], 'false', 'more than a minute ever has')
  t.match(never.json, { error: { message: /^Rate limit reached: 60 tokens a minute, and this request alone may use 1\d\d\.$/ } })
  t.match(await chat({ max_tokens: 20 }), { status: 200 })
  const later = await chat({ max_tokens: 20 })
  t.match(later, { status: 429, json: { error: { message: 'Rate limit reached: 60 tokens a minute.' } } })
  t.equal(later.headers['x-should-retry'], undefined, 'it fits later')
})

t.test('a request that is larger than a minute of its group is told so where tokens are what refuses it', async (t) => {
  const { chat } = await setup(t, { group: { tokensPerMinute: 60, requestsPerMinute: 1 } })
  t.match(await chat({ max_tokens: 100 }), { status: 429, headers: { 'x-should-retry': 'false' } })
  t.match(await chat({ max_tokens: 20 }), { status: 200 })
  const asked = await chat({ max_tokens: 100 })
  t.match(asked, { status: 429, json: { error: { code: 'request_rate_exceeded' } } })
  t.equal(asked.headers['x-should-retry'], undefined)
})

t.test('requests at the same time', async (t) => {
  const { url, chat, upstream, quiet } = await setup(t, { group: { concurrency: 1 } })
  let go = (): void => {}
  const wait = new Promise<void>((resolve) => { go = resolve })
  upstream.queue({ before: async () => await wait })
  const first = call(`${url}/v1/chat/completions`, { body: JSON.stringify({ model: 'm', messages }) }).reply
  await upstream.requests.next()
  t.match(await chat(), { status: 429, headers: { 'retry-after': '1' }, json: { error: { code: 'concurrency_exceeded' } } })
  go()
  await read(await first)
  t.match(await chat(), { status: 200 }, 'free as soon as the reply is there')
  await quiet()
})

t.test('what is not metered takes a place and no tokens', async (t) => {
  const { url, quiet } = await setup(t, { group: { balance: 5, requestsPerMinute: 2 } })
  const reply = await call(`${url}/v1/models`, { method: 'GET' }).reply
  t.equal(reply.statusCode, 200)
  await read(reply)
  t.match(await quiet(), { spent: 0, requests: 1 })
})

t.test('requests of nobody, of other routes and without limits pass', async (t) => {
  const { app, url, chat, account, quiet, records } = await setup(t)
  t.equal((await post(`${url}/v1/chat/completions`, { model: 'm', messages }, { authorization: 'Bearer wrong' })).status, 401)
  t.equal((await app.inject('/elsewhere')).statusCode, 404)
  t.equal((await chat()).status, 200)
  await quiet()
  t.same(await account(), { spent: 0, held: 0, active: 0, requests: 0, tokens: 0 })
  t.equal((await records()).length, 1, 'and leave a record')
})

t.test('without options the limits are counted in this process', async (t) => {
  const { app, url } = await setup(t, { group: { requestsPerMinute: 1 } })
  t.ok(app.hasPlugin('llm-gateway-limits'))
  t.equal((await post(`${url}/v1/chat/completions`, { model: 'm', messages })).status, 200)
  t.equal((await post(`${url}/v1/chat/completions`, { model: 'm', messages })).status, 429)
})

t.test('the store is asked once for a small body, and twice for one that does not tell its length', async (t) => {
  const asked: number[] = []
  const memory = memoryBalances()
  const balances: Balances = {
    ...memory,
    hold: async (ask) => {
      asked.push(ask.requests)
      return await memory.hold(ask)
    },
  }
  const { chat, quiet } = await setup(t, { group: { requestsPerMinute: 2 }, limits: { balances } })
  t.equal((await chat({ messages: 'none' })).status, 400)
  t.same(asked, [], 'nor is it for a body that is refused')
  t.equal((await chat()).status, 200)
  t.equal((await chat({}, { 'transfer-encoding': 'chunked' })).status, 200)
  t.same(asked, [1, 1, 0])
  t.equal((await chat()).status, 429)
  t.match(await quiet(), { active: 0, held: 0 })
})

t.test('metrics tell rejections and what is left', async (t) => {
  const { url, chat, quiet } = await setup(t, {
    group: { balance: chatTokens * 4, requestsPerMinute: 1 }, key: { balance: chatTokens * 4 },
  })
  await chat({ max_tokens: 1 })
  await quiet()
  await chat({ max_tokens: 1 })
  const text = await (await fetch(`${url}/metrics`)).text()
  t.match(text, 'llm_gateway_limit_rejections_total{group="all",limit="requests"} 1')
  t.match(text, 'llm_gateway_balance_remaining_ratio{group="all"} 0.75')
})
