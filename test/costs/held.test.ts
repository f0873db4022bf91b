/** Budgets hold what requests may cost beside their tokens: many at once never spend more than there is. */
import t, { type Test } from 'tap'
import { memoryBalances } from '../../plugins/state/index.js'
import { everyProtocol, secret, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

const models = {
  chat: { input: 1, cache_read: 0.1, output: 10, tiers: { priority: { input: 100, cache_read: 10, output: 1_000 } } },
  searcher: { input: 1, output: 1, each: { search: 0.01 } },
  painter: { each: { image: 0.04 } },
  coder: { input: 1, output: 1, each: { container: 0.03 } },
}
const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 }
/** Each of 300 tokens and three searches at most: 0.0303. */
const message = { model: 'searcher', max_tokens: 200, messages: [{ role: 'user', content: 'x'.repeat(240) }], tools: [search] }

interface Spent {
  readonly served: number
  readonly spent: number
}

async function serve (
  t: Test, path: string, payload: object, reply: object, cost: number, times = 300, more: Record<string, string> = {}
): Promise<Spent> {
  const upstream = await startUpstream(t)
  const balances = memoryBalances()
  const { app, settled } = await startGateway(t, upstream.url, {
    prices: { models },
    groups: { all: { protocols: everyProtocol, limits: { budgets: [{ cost, period: 'total' }] } } },
    keys: [{ id: 'caller', group: 'all', secret }],
    limits: { balances },
  })
  upstream.respond = () => ({ headers: { 'content-type': 'stream' in payload ? 'text/event-stream' : 'application/json' }, body: reply })
  const headers = { authorization: `Bearer ${secret}`, 'x-goog-api-key': secret, 'anthropic-version': '2023-06-01', ...more }
  const statuses = await Promise.all(Array.from({ length: times }, async () =>
    (await app.inject({ method: 'POST', url: path, headers, payload })).statusCode))
  for (let at = 0; at < statuses.length; at += 1) await settled.next()
  const { spent, held } = await balances.readBucket('cost:USD total UTC ', 'all')
  t.equal(held, 0)
  return { served: statuses.filter((status) => status === 200).length, spent }
}

t.test('a budget for 50 requests with three searches each serves 50 of 300 at once', async (t) => {
  const usage = { input_tokens: 100, output_tokens: 200, server_tool_use: { web_search_requests: 3 } }
  const reply = { id: 'm', type: 'message', role: 'assistant', model: 'searcher', content: [], stop_reason: 'end_turn', usage }
  // 50 x (0.0003 + 0.03), and the estimate of their bytes for the last of them.
  t.same(await serve(t, '/v1/messages', message, reply, 1.5151), { served: 50, spent: 1_515_000_000 })
})

t.test('a budget for 50 requests with two pictures each serves 50 of 300 at once', async (t) => {
  const reply = { created: 1, data: [{ url: 'https://a.example' }, { url: 'https://b.example' }] }
  t.same(await serve(t, '/v1/images/generations', { model: 'painter', prompt: 'x', n: 2 }, reply, 4), { served: 50, spent: 4_000_000_000 })
})

t.test('a budget for 50 requests with four answers each, told in a text, serves 50 of 300 at once', async (t) => {
  const generationConfig = { maxOutputTokens: 250, candidateCount: '4' }
  const usageMetadata = { candidatesTokenCount: 1_000, totalTokenCount: 1_000 }
  const reply = { candidates: [{ finishReason: 'STOP' }], usageMetadata, modelVersion: 'chat' }
  const payload = { contents: [{ parts: [{ text: 'Hi' }] }], generationConfig }
  // 50 x 0.01, and the estimate of their bytes for the last of them.
  const { served, spent } = await serve(t, '/v1beta/models/chat:generateContent', payload, reply, 0.502)
  t.same({ served, spent }, { served: 50, spent: 500_000_000 })
})

t.test('a budget for 50 requests with a container of four gigabytes each serves 50 of 300 at once', async (t) => {
  const tools = [{ type: 'code_interpreter', container: { type: 'auto', memory_limit: '4g' } }]
  const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 }
  const output = [{ type: 'code_interpreter_call', container_id: 'a' }, { type: 'code_interpreter_call', container_id: 'a' }]
  const reply = { id: 'r', object: 'response', status: 'completed', model: 'coder', output, usage, tools }
  const payload = { model: 'coder', input: 'Hi', max_output_tokens: 1, tools }
  // 50 x 4 x 0.03, and the estimate of their bytes for the last of them.
  t.same(await serve(t, '/v1/responses', payload, reply, 6.01), { served: 50, spent: 6_000_000_000 })
})

t.test('a paid tool is held for in a large body, too, however much stands beside it, or in itself before its name', async (t) => {
  const many = Array.from({ length: 9_000 }, (_, index) => `${index}.example`)
  const files = { type: 'file_search', vector_store_ids: many }
  const box = { type: 'code_interpreter', container: { type: 'auto', memory_limit: '64g' } }
  const searches = { ...search, max_uses: 200 }
  const { served } = await serve(t, '/v1/responses', { model: 'coder', input: 'x', max_output_tokens: 1, tools: [files, box] }, {}, 1, 1)
  t.equal(served, 0, 'beside it')
  for (const odd of [many, [...Array(20).keys()].map(() => 'x'.repeat(17_000))]) {
    const tools = [{ ...odd, ...searches }]
    t.equal((await serve(t, '/v1/messages', { ...message, tools }, {}, 1, 1)).served, 0, 'in itself')
  }
})

t.test('searches of tools that an item of the conversation brings are held', async (t) => {
  const tools = { type: 'additional_tools', role: 'developer', tools: [{ type: 'web_search' }] }
  const output = Array.from({ length: 3 }, () => ({ type: 'web_search_call', action: { type: 'search' } }))
  const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 }
  const reply = { id: 'r', object: 'response', status: 'completed', model: 'searcher', output, usage }
  const payload = { model: 'searcher', max_output_tokens: 1, max_tool_calls: 3, input: [tools, { role: 'user', content: 'Hi' }] }
  // 50 x 3 x 0.01, and the estimate of their bytes for the last of them.
  t.same(await serve(t, '/v1/responses', payload, reply, 1.51), { served: 50, spent: 1_500_000_000 })
  // Checked in a thread: some 75,000 tokens, and three searches.
  const many = Array.from({ length: 3_000 }, () => ({ role: 'user', content: 'x'.repeat(70) }))
  const large = { ...payload, input: [...many, tools] }
  t.same(await serve(t, '/v1/responses', large, reply, 0.1, 1), { served: 0, spent: 0 })
  t.same(await serve(t, '/v1/responses', large, reply, 0.2, 1), { served: 1, spent: 30_000_000 })
})

t.test('a tier that a header asks for is held, and needs a price', async (t) => {
  const usageMetadata = { candidatesTokenCount: 100, totalTokenCount: 100, trafficType: 'ON_DEMAND_PRIORITY' }
  const reply = { candidates: [{ finishReason: 'STOP' }], usageMetadata, modelVersion: 'chat' }
  const payload = { contents: [{ parts: [{ text: 'Hi' }] }], generationConfig: { maxOutputTokens: 100 } }
  const asks = { 'x-vertex-ai-llm-shared-request-type': 'priority' }
  // 50 x 0.1, and the estimate of their bytes.
  const spent = { served: 50, spent: 5_000_000_000 }
  t.same(await serve(t, '/v1beta/models/chat:generateContent', payload, reply, 5.2, 300, asks), spent)
  t.same(await serve(t, '/v1beta/models/searcher:generateContent', payload, reply, 5.2, 1, asks), { served: 0, spent: 0 })
  t.same(await serve(t, '/v1/chat/completions', { ...asked, model: 'searcher' }, reply, 5.2, 1, asks), { served: 0, spent: 0 })
})

t.test('a tier that is asked for by its number has no price', async (t) => {
  const usageMetadata = { candidatesTokenCount: 1, totalTokenCount: 1 }
  const reply = { candidates: [{ finishReason: 'STOP' }], usageMetadata, modelVersion: 'chat' }
  const payload = { contents: [{ parts: [{ text: 'Hi' }] }], serviceTier: 3 }
  t.same(await serve(t, '/v1beta/models/chat:generateContent', payload, reply, 1_000, 1), { served: 0, spent: 0 })
})

t.test('a search that a chat asks for outside of its tools is held', async (t) => {
  const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, server_tool_use: { web_search_requests: 1 } }
  const reply = answer(usage, { model: 'searcher' })
  const payload = { ...asked, model: 'searcher', max_tokens: 1, web_search_options: {} }
  t.same(await serve(t, '/v1/chat/completions', payload, reply, 0.502), { served: 50, spent: 500_000_000 })
  const told = answer({ ...usage, server_tool_use: undefined, plugins: { search: { count: 1 } } }, { model: 'searcher' })
  const flag = { ...asked, model: 'searcher', max_tokens: 1, enable_search: true }
  t.same(await serve(t, '/v1/chat/completions', flag, told, 0.502), { served: 50, spent: 500_000_000 })
  const none = answer({ ...usage, server_tool_use: undefined }, { model: 'searcher' })
  t.same(await serve(t, '/v1/chat/completions', { ...flag, enable_search: false }, none, 0.005, 1), { served: 1, spent: 0 })
  const many = Array.from({ length: 9_000 }, () => ({ role: 'user', content: '' }))
  t.same(await serve(t, '/v1/chat/completions', { ...flag, messages: many, stop: many }, told, 0.1, 1), { served: 0, spent: 0 })
})

t.test('a chat that its provider answers later, elsewhere, is charged what it held', async (t) => {
  // https://docs.x.ai/developers/advanced-api-usage/deferred-chat-completions: nothing here tells what it used.
  for (const deferred of [true, 'true', 1]) {
    const payload = { ...asked, deferred }
    const held = 10_000_000 + Math.ceil(JSON.stringify(payload).length / 4) * 1_000
    const spent = { served: 50, spent: 50 * held }
    t.same(await serve(t, '/v1/chat/completions', payload, { request_id: 'f15c114e' }, 50 * held / 1e9, 60), spent)
  }
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
  const spent = { served: 1, spent: 200_000 }
  t.same(await serve(t, '/v1/chat/completions', { ...asked, deferred: true }, answer(usage), 1, 1), spent, 'unless it tells')
})

t.test('places that Google Maps finds are held for and charged as one search', async (t) => {
  const maps = ['a', 'b'].map((place) => ({ maps: { uri: `https://maps.google.com/?cid=${place}`, title: place } }))
  const reply = (grounding: object): object => ({
    candidates: [{ finishReason: 'STOP', groundingMetadata: grounding }],
    usageMetadata: { promptTokenCount: 0, totalTokenCount: 0 },
    modelVersion: 'searcher',
  })
  const found = reply({ groundingChunks: [{ web: { uri: 'x' } }, ...maps] })
  for (const name of ['googleMaps', 'google_maps']) {
    const payload = { contents: [{ parts: [{ text: 'Hi' }] }], tools: [{ [name]: {} }], generationConfig: { maxOutputTokens: 1 } }
    t.same(await serve(t, '/v1beta/models/searcher:generateContent', payload, found, 0.502), { served: 50, spent: 500_000_000 }, name)
    const both = reply({ groundingChunks: maps, webSearchQueries: ['x', 'y'] })
    t.same(await serve(t, '/v1beta/models/searcher:generateContent', payload, both, 1, 1), { served: 1, spent: 30_000_000 })
    const none = reply({ groundingChunks: [{ web: { uri: 'x' } }] })
    t.same(await serve(t, '/v1beta/models/searcher:generateContent', payload, none, 1, 1), { served: 1, spent: 0 })
  }
})

t.test('what is declared and not used costs nothing', async (t) => {
  const usage = { input_tokens: 100, output_tokens: 200 }
  const reply = { id: 'm', type: 'message', role: 'assistant', model: 'searcher', content: [], stop_reason: 'end_turn', usage }
  t.same(await serve(t, '/v1/messages', message, reply, 1_000), { served: 300, spent: 300 * 300_000 })
})

const asked = { model: 'chat', max_tokens: 1_000, messages: [{ role: 'user', content: 'Hi' }] }

function answer (usage: object | null, more: object = {}): object {
  const choice = { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'x' } }
  return { id: 'c', model: 'chat', choices: [choice], usage, ...more }
}

t.test('what has no price in a reply makes nothing else of it dearer', async (t) => {
  const usage = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100, prompt_tokens_details: { cached_tokens: 900 } }
  const timed = answer({ ...usage, seconds: 3 })
  // 100 x 1, 900 x 0.1, 100 x 10
  t.same(await serve(t, '/v1/chat/completions', asked, answer(usage), 1, 1), { served: 1, spent: 1_190_000 })
  t.same(await serve(t, '/v1/chat/completions', asked, timed, 1, 1), { served: 1, spent: 1_190_000 })
})

t.test('a tier that was asked for, and is not told as it is called, is charged as it was held', async (t) => {
  const usage = { prompt_tokens: 10, completion_tokens: 100, total_tokens: 110 }
  const priority = { ...asked, service_tier: 'priority' }
  t.same(await serve(t, '/v1/chat/completions', priority, answer(usage, { service_tier: 'odd' }), 2, 1), { served: 1, spent: 101_000_000 })
  const { spent } = await serve(t, '/v1/chat/completions', priority, answer(null), 2, 1)
  t.ok(spent > 10_000_000, `${spent}, where nothing was told`)
})

t.test('an object in place of a word or a number, and a size of very many digits, fail no request', async (t) => {
  const odd = { toString: null }
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, {
    prices: { models },
    groups: { all: { protocols: everyProtocol, limits: { budgets: [{ cost: 5, period: 'total' }] } } },
    keys: [{ id: 'caller', group: 'all', secret }],
  })
  upstream.respond = () => ({ headers: { 'content-type': 'application/json' }, body: {} })
  const runs = (size: unknown): object => ({ type: 'code_interpreter', container: { type: 'auto', memory_limit: size } })
  const asks: ReadonlyArray<[status: number, path: string, payload: object]> = [
    [403, '/v1/chat/completions', { ...asked, service_tier: odd }],
    [200, '/v1beta/models/chat:generateContent', { contents: [{ parts: [{ text: 'Hi' }] }], generationConfig: { candidateCount: odd } }],
    [200, '/v1/messages', { ...message, tools: [{ ...search, max_uses: odd }] }],
    [200, '/v1/responses', { model: 'coder', input: 'x', tools: [runs(odd)] }],
    [403, '/v1/responses', { model: 'coder', input: 'x', tools: [runs('9'.repeat(400))] }],
  ]
  for (const [status, url, payload] of asks) {
    const headers = { authorization: `Bearer ${secret}`, 'x-goog-api-key': secret, 'anthropic-version': '2023-06-01' }
    t.equal((await app.inject({ method: 'POST', url, headers, payload })).statusCode, status, url)
  }
})

t.test('a stream that breaks off is charged what it told of its input at the rates of that, and the words that came', async (t) => {
  const event = (type: string, more: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
  const usage = { input_tokens: 10, cache_read_input_tokens: 9_990, output_tokens: 1 }
  const start = event('message_start', { message: { id: 'm', model: 'chat', usage } })
  const words = event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: ' some words' } }).repeat(40)
  const reply = Buffer.from(start + words)
  const payload = { model: 'chat', stream: true, max_tokens: 1_000, messages: [{ role: 'user', content: 'x'.repeat(39_000) }] }
  const spent = 10 * 1_000 + 9_990 * 100 + Math.ceil(reply.length / 40) * 10_000
  t.same(await serve(t, '/v1/messages', payload, reply, 1, 1), { served: 1, spent })
})
