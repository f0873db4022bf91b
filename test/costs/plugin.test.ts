/** What requests cost, from the reply through every place that tells it. */
import { gzipSync } from 'node:zlib'
import httpProxy from '@fastify/http-proxy'
import fastify from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { modelRequestOf } from '../../plugins/core/call/model-request-view.js'
import llmGateway, { costs, metrics, proxyOptions } from '../../plugins/index.js'
import { memoryKeys, memoryLedger, type LedgerRecord } from '../../plugins/state/index.js'
import { call, listen, read, secret, startGateway } from '../helpers/gateway.js'
import { sha256, startUpstream } from '../helpers/upstream.js'

const models = {
  'gpt-5': { input: 1, cache_read: 0.1, output: 2, reasoning: 2, tiers: { flex: 0.5 } },
  'claude-*': { input: 3, cache_read: 0.3, cache_write_5m: 3.75, output: 15, reasoning: 15 },
}
const chat = {
  id: 'c',
  object: 'chat.completion',
  model: 'gpt-5-2025-08-07',
  service_tier: 'flex',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hi' } }],
  usage: { prompt_tokens: 1000, completion_tokens: 10, total_tokens: 1010 },
}
const json = { 'content-type': 'application/json' }

function ask (model = 'gpt-5', more: object = {}): object {
  return {
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: `Bearer ${secret}` },
    payload: { model, messages: [{ role: 'user', content: 'hi' }], ...more },
  }
}

async function recordsIn (ledger: ReturnType<typeof memoryLedger>): Promise<LedgerRecord[]> {
  const records: LedgerRecord[] = []
  for await (const record of ledger.read()) records.push(record)
  return records
}

t.test('prices hold by the clock as it is, also where it was set since the process began', async (t) => {
  const upstream = await startUpstream(t)
  const ledger = memoryLedger()
  const turns = Date.now() + 86_400_000
  const at = new Date(turns).toISOString()
  const { app, settled } = await startGateway(t, upstream.url, {
    prices: { models: { 'gpt-5': [{ input: 1, output: 1, until: at }, { input: 2, output: 2, from: at }] } },
    limits: { ledger },
    groups: { all: { protocols: ['chat_completions'] } },
    keys: [{ id: 'caller', group: 'all', secret }],
  })
  for (const now of [turns - 1, turns]) {
    t.intercept(Date, 'now', { value: () => now })
    upstream.queue({ headers: json, body: { ...chat, service_tier: undefined } })
    t.equal((await app.inject(ask())).statusCode, 200)
    await settled.next()
  }
  await ledger.flush()
  t.hasStrict(await recordsIn(ledger), [
    { cost: '0.00101', bill: { startedAt: turns - 1 } }, { cost: '0.00202', bill: { startedAt: turns } },
  ])
})

t.test('the cost of a reply is in the request, the ledger and the metrics', async (t) => {
  const upstream = await startUpstream(t)
  const ledger = memoryLedger()
  const { app, settled } = await startGateway(t, upstream.url, {
    prices: { models },
    limits: { ledger },
    groups: { all: { protocols: ['chat_completions'], labels: { team: 'search', stage: 'test' } } },
    keys: [{ id: 'caller', group: 'all', secret, labels: { team: 'shop' } }],
    upstreams: { main: { url: upstream.url, credential: 'x', priceFactor: 1.1 } },
  })
  upstream.queue({ headers: json, body: chat })
  t.equal((await app.inject(ask())).statusCode, 200)
  const llm = await settled.next()
  // 1000 x 1 x 0.5 x 1.1 + 10 x 2 x 0.5 x 1.1, of a million
  t.hasStrict(llm.cost?.exact, {
    amount: '0.000561', billionths: 561_000, currency: 'USD', entry: 'gpt-5', by: 'reply', factor: '1.1', unpriced: false,
  })
  t.equal(modelRequestOf(llm).cost, llm.cost?.exact, 'a host reads the same')
  await ledger.flush()
  const [record] = await recordsIn(ledger)
  t.hasStrict(record, {
    cost: '0.000561',
    currency: 'USD',
    price: llm.cost?.exact.price,
    costParts: { input: '0.00055', output: '0.000011' },
    serviceTier: 'flex',
    labels: { team: 'shop', stage: 'test' },
    bill: { startedAt: llm.arrivedAt, model: 'gpt-5-2025-08-07', factor: '1.1' },
  })
  const { body } = await app.inject('/metrics')
  t.match(body, /llm_gateway_cost_total\{protocol="chat_completions",group="all",model="gpt-5",currency="USD"\} 0\.000561\n/)
  t.notMatch(body, /llm_gateway_unpriced_requests_total\{/)
  t.equal(gatewayOf(app).pricing?.currency, 'USD')
})

t.test('an upstream without a factor has the prices of the lists, beside one that has a factor', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, {
    prices: { models },
    upstreams: { main: { url: upstream.url, credential: 'x' }, dear: { url: upstream.url, credential: 'x', priceFactor: 2 } },
    groups: { all: { protocols: ['chat_completions'], routes: [{ models: ['gpt-5'], upstream: 'main' }], upstream: 'dear' } },
  })
  const costs: Array<string | null | undefined> = []
  for (const model of ['gpt-5', 'gpt-5-other', 'gpt-5']) {
    upstream.queue({ headers: json, body: { ...chat, service_tier: null } })
    await app.inject(ask(model))
    costs.push((await settled.next()).cost?.exact.amount)
  }
  t.strictSame(costs, ['0.00102', '0.00204', '0.00102'])
  await app.inject(ask('gpt-5', { messages: 7 }))
  t.equal((await settled.next()).cost, null, 'and what no upstream took costs nothing')
})

t.test('what has no price is counted, and free for nobody', async (t) => {
  const upstream = await startUpstream(t)
  const ledger = memoryLedger()
  const { app, settled } = await startGateway(t, upstream.url, {
    prices: { models: { ...models, partly: { input: 1 } } }, limits: { ledger },
  })
  for (const model of ['unheard-of', 'partly']) {
    upstream.queue({ headers: json, body: { ...chat, model, service_tier: null } })
    await app.inject(ask(model))
  }
  t.hasStrict((await settled.next()).cost?.exact, { amount: null, entry: null, unpriced: true })
  t.hasStrict((await settled.next()).cost?.exact, {
    amount: '0.001', unpriced: true, parts: [{ name: 'input', amount: '0.001' }, { name: 'output', amount: null }],
  })
  const [none, part] = await recordsIn(ledger)
  t.hasStrict(none, { cost: null, currency: 'USD', costParts: { input: null, output: null } })
  t.equal(none?.price, undefined)
  t.match(part, { cost: '0.001', price: /^[0-9a-f]{16}$/ })
  const { body } = await app.inject('/metrics')
  t.match(body, /llm_gateway_unpriced_requests_total\{protocol="chat_completions",model="unheard-of"\} 1\n/)
  t.match(body, /llm_gateway_unpriced_requests_total\{protocol="chat_completions",model="partly"\} 1\n/)
})

t.test('a request that was refused, or failed upstream, costs nothing', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { prices: { models } })
  upstream.queue({ status: 429, headers: json, body: { error: { message: 'slow down' } } })
  t.equal((await app.inject(ask())).statusCode, 429)
  t.equal((await settled.next()).cost, null)
  t.equal((await app.inject({ ...ask(), headers: {} })).statusCode, 401)
  t.equal((await settled.next()).cost, null)
})

t.test('a model without a price is refused on a budget in money, also where the host admits what the limits would ask', async (t) => {
  const upstream = await startUpstream(t)
  const limits = { budgets: [{ cost: 1, period: 'day' as const }] }
  for (const [ofGroup, ofKey] of [[{ limits }, {}], [{}, { limits }]]) {
    const { app, settled } = await startGateway(t, upstream.url, {
      prices: { models },
      groups: { all: { protocols: ['chat_completions'], ...ofGroup } },
      keys: [{ id: 'own', group: 'all', secret, ...ofKey }],
      limits: { authorize: () => 'admit' },
    })
    const refused = await app.inject(ask('unheard-of'))
    t.equal(refused.statusCode, 403)
    t.match(refused.json(), { error: { code: 'model_not_priced' } })
    t.hasStrict(await settled.next(), { errorCode: 'model_not_priced', cost: null })
    t.equal(upstream.seen.length, 0)
    upstream.queue({ headers: json, body: chat })
    t.equal((await app.inject(ask('gpt-5'))).statusCode, 200)
    upstream.seen.length = 0
  }
})

t.test('it passes where the host admits it, and allows what has no price', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, {
    prices: { models, unpriced: 'allow' },
    groups: { all: { protocols: ['chat_completions'], limits: { budgets: [{ cost: 1, period: 'day' }] } } },
    keys: [{ id: 'own', group: 'all', secret }],
    limits: { authorize: () => 'admit' },
  })
  upstream.queue({ headers: json, body: chat })
  t.equal((await app.inject(ask('unheard-of'))).statusCode, 200)
})

t.test('a budget in money lets a model pass that has a price only by its upstream\'s name for it', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, {
    prices: { models },
    groups: { all: { protocols: ['chat_completions'], limits: { budgets: [{ cost: 1, period: 'day' as const }] } } },
    upstreams: { main: { url: upstream.url, credential: 'x', models: { ours: 'gpt-5' } } },
  })
  upstream.queue({ headers: json, body: { ...chat, model: undefined } })
  t.equal((await app.inject(ask('ours'))).statusCode, 200)
  t.hasStrict((await settled.next()).cost?.exact, { amount: '0.00051', entry: 'gpt-5', by: 'alias' })
  t.equal((await app.inject(ask('theirs'))).statusCode, 403)
  t.equal(upstream.seen.length, 1)
})

t.test('a budget in money is held for the dearest of the models that may take the place of the first; each needs a price', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, {
    prices: { models: { ...models, dear: { input: 1_000, output: 10_000 } } },
    groups: { all: { protocols: ['chat_completions'], limits: { budgets: [{ cost: 1, period: 'day' as const }] } } },
  })
  const code = async (others: readonly string[]): Promise<unknown> => {
    const answer = await app.inject(ask('gpt-5', { max_tokens: 1_000, models: others }))
    return answer.statusCode === 200 ? 200 : answer.json().error.code
  }
  t.equal(await code(['gpt-5', 'dear']), 'budget_exceeded')
  t.equal(await code(['gpt-5', 'unheard-of']), 'model_not_priced')
  t.equal(upstream.seen.length, 0)
  upstream.queue({ headers: json, body: chat })
  t.equal(await code(['gpt-5', 'claude-x']), 200)
  upstream.queue({ headers: json, body: chat })
  const drawing = ask('gpt-5', { tools: [{ type: 'image_generation', model: 'unheard-of' }] })
  t.equal((await app.inject(drawing)).statusCode, 200, 'what tools use is at the prices of tools')
  for (const llm of [await settled.next(), await settled.next()]) t.equal(llm.cost, null)
  t.hasStrict((await settled.next()).cost?.exact, { amount: '0.00051', entry: 'gpt-5', by: 'reply' }, 'and it costs what replied')
})

t.test('an advisor costs what its model does, or what the first has for tools; a budget needs a price of it', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, {
    prices: {
      models: { cheap: { input: 1, output: 5 }, own: { input: 1, output: 5, tools: { output: 7 } }, dear: { input: 5, output: 25 } },
    },
    groups: { all: { protocols: ['messages'], limits: { budgets: [{ cost: 0.15, period: 'day' as const }] } } },
  })
  const messages = [{ role: 'user', content: 'hi' }]
  const advise = async (model: string, advisor: string, max = 10): Promise<unknown> => {
    const iterations = [{ type: 'advisor_message', model: advisor, input_tokens: 0, output_tokens: 1_000 }]
    upstream.queue({ headers: json, body: { model, usage: { input_tokens: 1, output_tokens: 2, iterations } } })
    const payload = { model, max_tokens: max, messages, tools: [{ type: 'advisor_20260301', name: 'advisor', model: advisor }] }
    const answer = await app.inject({
      method: 'POST', url: '/v1/messages', headers: { 'x-api-key': secret, 'anthropic-version': '2023-06-01' }, payload,
    })
    return answer.statusCode === 200 ? (await settled.next()).cost?.exact.amount : answer.json().error.details.error_code
  }
  t.equal(await advise('cheap', 'dear'), '0.025011')
  t.equal(await advise('own', 'dear'), '0.007011')
  t.equal(await advise('cheap', 'unheard-of'), 'model_not_priced')
  const tool = { type: 'tool_addition', tool: { definition: { type: 'advisor_20260301', model: 'unheard-of' } } }
  messages.push(Object.assign({ role: 'user', content: '' }, { content: [tool] }))
  t.equal(await advise('cheap', 'dear'), 'model_not_priced', 'nor does one within the conversation pass')
  messages.pop()
  t.equal(await advise('cheap', 'dear', 100_000), 'budget_exceeded', 'it is held at the price of the advisor')
})

t.test('they are, and are counted, where nobody asks for a key', async (t) => {
  const app = fastify()
  t.after(async () => await app.close())
  await app.register(metrics)
  await app.register(costs, { models, unpriced: 'refuse' })
  await app.register(httpProxy, { ...proxyOptions(), upstream: 'http://127.0.0.1:9', prefix: '/v1', rewritePrefix: '/v1' })
  t.equal((await app.inject({ ...ask('unheard-of'), method: 'POST' })).statusCode, 403)
  t.match((await app.inject('/metrics')).body, 'llm_gateway_limit_rejections_total{group="none",limit="price"} 1')
})

t.test('in a mount of the host nobody knows another name', async (t) => {
  const upstream = await startUpstream(t)
  const app = fastify()
  t.after(async () => await app.close())
  await app.register(llmGateway, {
    routes: false,
    prices: { models },
    groups: { all: { protocols: ['chat_completions'], limits: { budgets: [{ cost: 1, period: 'day' }] } } },
    keys: [{ id: 'own', group: 'all', secret }],
  })
  await app.register(httpProxy, { ...proxyOptions(), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  upstream.queue({ headers: json, body: chat })
  t.equal((await app.inject({ ...ask(), method: 'POST' })).statusCode, 200)
  t.equal((await app.inject({ ...ask('unheard-of'), method: 'POST' })).statusCode, 403)
  t.equal(upstream.seen.length, 1)
})

t.test('an image whose model the provider would choose has no price, and no budget in money', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, {
    prices: { models }, groups: { all: { protocols: ['images'], limits: { budgets: [{ cost: 1, period: 'day' as const }] } } },
  })
  const refused = await app.inject({ ...ask(), url: '/v1/images/generations', payload: { prompt: 'x' } })
  t.match([refused.statusCode, refused.json()], [403, { error: { code: 'model_not_priced' } }])
  t.equal(upstream.seen.length, 0)
})

t.test('models without a price can be refused', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { prices: { models, unpriced: 'refuse' } })
  const refused = await app.inject(ask('unheard-of'))
  t.equal(refused.statusCode, 403)
  t.match(refused.json(), { error: { code: 'model_not_priced' } })
  t.hasStrict(await settled.next(), { errorCode: 'model_not_priced', cost: null })
  t.match((await app.inject('/metrics')).body, 'llm_gateway_limit_rejections_total{group="all",limit="price"} 1')
  upstream.queue({ headers: json, body: chat })
  t.equal((await app.inject(ask())).statusCode, 200)
  t.equal(
    (await app.inject({ method: 'GET', url: '/v1/models', headers: { authorization: `Bearer ${secret}` } })).statusCode,
    200,
    'a list of models costs nothing'
  )
  t.equal(upstream.seen.length, 2)
})

t.test('where a budget is in money, they are refused unless that is allowed', async (t) => {
  const upstream = await startUpstream(t)
  const limited = { keys: [], store: memoryKeys() }
  const limits = { budgets: [{ tokens: 1_000_000, period: 'day' as const }, { cost: 5, period: 'month' as const }] }
  await limited.store.create({
    id: 'k', group: 'all', digest: sha256(secret), disabled: false, expiresAt: null, createdAt: 0, label: 'team=search', limits,
  })
  const { app, settled } = await startGateway(t, upstream.url, { ...limited, prices: { models } })
  t.equal((await app.inject(ask('unheard-of'))).statusCode, 403)
  t.strictSame((await settled.next()).auth.key?.labels, { team: 'search' })
  t.equal((await app.inject(ask())).statusCode, 200)
  const lenient = await startGateway(t, upstream.url, { ...limited, prices: { models, unpriced: 'allow' } })
  t.equal((await lenient.app.inject(ask('unheard-of'))).statusCode, 200)
})

t.test('replies that are not streamed tell their cost in a header', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { prices: { models }, costs: { header: true } })
  const url = await listen(app)
  const body = JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'hi' }] })
  const post = async (more: object = {}) => {
    const reply = await call(`${url}/v1/chat/completions`, { body, headers: { 'accept-encoding': 'gzip' }, ...more }).reply
    return { reply, header: reply.headers['x-llm-gateway-cost'], ...await read(reply) }
  }
  upstream.queue({ headers: json, body: chat })
  const small = await post()
  t.equal(small.header, '0.00051')
  t.strictSame(JSON.parse(small.bytes.toString()), chat)
  t.equal((await upstream.requests.next()).headers['accept-encoding'], 'identity')

  const large = { ...chat, choices: [{ ...chat.choices[0], message: { content: 'x'.repeat(300_000) } }] }
  const text = Buffer.from(JSON.stringify(large))
  upstream.queue({ headers: json, body: text, split: [1000] })
  const split = await post()
  t.equal(split.header, '0.00051', 'of a reply in pieces')
  t.ok(split.bytes.equals(text))

  const huge = Buffer.from(JSON.stringify({ ...chat, choices: [{ message: { content: 'x'.repeat(5 * 1024 * 1024) } }] }))
  upstream.queue({ headers: json, body: huge, split: [1000] })
  const passed = await post()
  t.equal(passed.header, undefined, 'of one that is too large to be held')
  t.ok(passed.bytes.equals(huge))

  upstream.queue({ headers: { ...json, 'content-encoding': 'gzip' }, body: gzipSync(JSON.stringify(chat)) })
  t.equal((await post()).header, undefined, 'of an upstream that packs what nobody asked it to')

  upstream.queue({ headers: json, body: { ...chat, model: 'x', usage: null } })
  t.equal((await post()).header, undefined, 'of a reply that tells no usage')

  upstream.queue({ headers: { 'content-type': 'text/event-stream' }, body: `data: ${JSON.stringify(chat)}\n\ndata: [DONE]\n\n` })
  const streamed = await post({ body: JSON.stringify({ ...JSON.parse(body), stream: true }) })
  t.strictSame([streamed.reply.statusCode, streamed.header], [200, undefined], 'of a stream, which begins before it is known')

  upstream.queue({ status: 400, headers: json, body: { error: { message: 'no' } } })
  t.equal((await post()).header, undefined, 'of a failure')

  upstream.queue({ headers: json, body: text, split: [1000], cutAt: 2000 })
  t.equal((await post().catch(() => ({ cut: true }))).cut, true, 'a reply that breaks off is broken off')
  for (let each = 0; each < 8; each += 1) await settled.next()
})

t.test('callers label their own requests where that is read', async (t) => {
  const upstream = await startUpstream(t)
  const ledger = memoryLedger()
  const { app } = await startGateway(t, upstream.url, {
    labels: { header: 'X-LLM-Labels' },
    limits: { ledger },
    groups: { all: { protocols: ['chat_completions'], labels: { team: 'search' } } },
  })
  upstream.queue({ headers: json, body: chat })
  await app.inject({
    ...ask(), headers: { authorization: `Bearer ${secret}`, 'x-llm-labels': 'team=other, app=shop=1,app=shop,=x, bad name=1,user=u 1' },
  })
  t.equal((await upstream.requests.next()).headers['x-llm-labels'], undefined)
  upstream.queue({ headers: json, body: chat })
  await app.inject(ask())
  const [labelled, plain] = await recordsIn(ledger)
  t.strictSame(labelled?.labels, { app: 'shop', user: 'u 1', team: 'search' })
  t.strictSame(plain?.labels, { team: 'search' })
})

t.test('of a name that several give, the key\'s label counts before the group\'s, and a caller\'s last; of those sixteen', async (
  t
) => {
  const upstream = await startUpstream(t)
  const ledger = memoryLedger()
  const { app } = await startGateway(t, upstream.url, {
    labels: { header: 'X-LLM-Labels' },
    limits: { ledger },
    groups: { all: { protocols: ['chat_completions'], labels: { team: 'group', stage: 'group' } } },
    keys: [{ id: 'caller', group: 'all', secret, labels: { team: 'key', unit: 'key' } }],
  })
  const numbered = Array.from({ length: 14 }, (_, at) => `n${at}=1`)
  for (const more of [{}, { 'x-llm-labels': ['team=own', 'stage=own', 'unit=own', ...numbered].join(', ') }]) {
    upstream.queue({ headers: json, body: chat })
    await app.inject({ ...ask(), headers: { authorization: `Bearer ${secret}`, ...more } })
  }
  const ofKey = { team: 'key', stage: 'group', unit: 'key' }
  const [unlabelled, labelled] = (await recordsIn(ledger)).map(({ labels }) => labels)
  t.strictSame(unlabelled, ofKey)
  t.strictSame(labelled, { ...ofKey, ...Object.fromEntries(numbered.slice(0, 13).map((label) => label.split('='))) })
})

t.test('wrong options are refused by name', async (t) => {
  const upstream = await startUpstream(t)
  const start = async (options: object): Promise<unknown> => await startGateway(t, upstream.url, options)
  await t.rejects(start({ prices: { files: 'prices.yaml' } }), { code: 'LLM_GATEWAY_OPTION', message: /prices\.files/ })
  await t.rejects(start({ prices: { unpriced: 'maybe' } }), { code: 'LLM_GATEWAY_OPTION', message: /prices\.unpriced/ })
  await t.rejects(start({ prices: { models: { a: { input: -1 } } } }), {
    code: 'LLM_GATEWAY_PRICES', message: /prices\.models: a\.input: must not be negative/,
  })
  await t.rejects(start({ prices: {}, upstreams: { main: { url: upstream.url, priceFactor: 0 } } }), {
    message: /upstreams\.main\.priceFactor must be above 0/,
  })
  await t.rejects(start({ labels: { header: 'authorization' } }), { message: /labels\.header/ })
  for (const [name, label] of [['a b', 'c'], ['n'.repeat(65), 'c'], ['a', 'c'.repeat(129)], ['a', 5], ['a', 'c,'], ['a', '']] as const) {
    await t.rejects(start({ groups: { all: { protocols: [], labels: { [name]: label } } } }), { message: `groups.all.labels.${name} ` })
  }
  await t.rejects(
    start({ groups: { all: { protocols: [], labels: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`l${at}`, 'x'])) } } }),
    { message: /at most 16/ }
  )
  const most = Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`l${at}`.padEnd(64, 'x'), 'x'.repeat(128)]))
  await t.resolves(start({ labels: {}, groups: { all: { protocols: [], labels: most } } }))
})
