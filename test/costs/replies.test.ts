/** What whole replies cost, as providers write them: cache writes in each spelling, and every way in which a reply can end. */
import t, { type Test } from 'tap'
import type { Cost } from '../../plugins/core/money/cost.js'
import { memoryLedger, type LedgerRecord } from '../../plugins/state/index.js'
import { call, listen, secret, startGateway, type Gateway } from '../helpers/gateway.js'
import { startUpstream, type Script, type Upstream } from '../helpers/upstream.js'
import { ask, inOrder, overloaded, startPool } from '../upstreams/pool-gateway.js'

const json = { 'content-type': 'application/json' }
const sse = { 'content-type': 'text/event-stream' }
const models = {
  'gpt-5': { input: 1, cache_read: 0.1, cache_write: 1.25, output: 10, reasoning: 10 },
  claude: { input: 3, cache_read: 0.3, cache_write: 4, cache_write_5m: 3.75, cache_write_1h: 6, output: 15, reasoning: 15 },
  'gemini-3': { input: 0.3, input_audio: 1, cache_read: 0.03, cache_read_audio: 0.1, output: 2.5 },
  'claude-short': { input: 3, cache_read: 0.3, cache_write_5m: 3.75, output: 15 },
}

interface Priced extends Gateway {
  readonly upstream: Upstream
  readonly cost: () => Promise<Cost | null>
}

async function priced (t: Test, drainMs = 1_000): Promise<Priced> {
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, upstream.url, { prices: { models }, forward: { drain: { maxMs: drainMs } } })
  return { ...gateway, upstream, cost: async () => (await gateway.settled.next()).cost?.exact ?? null }
}

function partsOf (cost: Cost | null): Record<string, string | null> {
  return Object.fromEntries(cost?.parts.map(({ name, amount }) => [name, amount]) ?? [])
}

const places = { messages: '/v1/messages', chat: '/v1/chat/completions', responses: '/v1/responses' }
const questions = {
  messages: { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
  chat: { messages: [{ role: 'user', content: 'hi' }] },
  responses: { input: 'hi' },
}

async function reply (gateway: Priced, kind: keyof typeof places, model: string, script: Script): Promise<Cost | null> {
  gateway.upstream.queue(script)
  // Where a reply breaks off, so does this one.
  await ask(
    gateway, { model, stream: script.headers === sse, ...questions[kind] }, { 'anthropic-version': '2023-06-01' }, places[kind]
  ).catch(() => {})
  return await gateway.cost()
}

function message (model: string, usage: object): Script {
  return { headers: json, body: { id: 'm', type: 'message', role: 'assistant', model, content: [], stop_reason: 'end_turn', usage } }
}

function events (...each: object[]): string {
  return each.map((event) => `event: ${Reflect.get(event, 'type')}\ndata: ${JSON.stringify(event)}\n\n`).join('')
}

t.test('audio from a cache has its own price, streamed or not, where the reply tells how much it is', async (t) => {
  const gateway = await priced(t)
  const usageMetadata = {
    promptTokenCount: 1_000,
    cachedContentTokenCount: 600,
    candidatesTokenCount: 10,
    totalTokenCount: 1_010,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: 200 }, { modality: 'AUDIO', tokenCount: 800 }],
    cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 600 }],
  }
  const body = { candidates: [{ content: { parts: [{ text: 'hi' }] }, finishReason: 'STOP' }], modelVersion: 'gemini-3', usageMetadata }
  const told = JSON.stringify(body)
  for (const [action, script] of [
    ['generateContent', { headers: json, body }],
    ['streamGenerateContent', { headers: json, body: `[${told},${told}]` }],
    ['streamGenerateContent?alt=sse', { headers: sse, body: `data: ${told}\n\n` }],
  ] as const) {
    gateway.upstream.queue(script)
    await ask(gateway, { contents: [{ parts: [{ text: 'hi' }] }] }, { 'x-goog-api-key': secret }, `/v1beta/models/gemini-3:${action}`)
    const cost = await gateway.cost()
    t.strictSame(partsOf(cost), {
      input: '0.00006', input_audio: '0.0002', cache_read_audio: '0.00006', output: '0.000025',
    }, action)
    t.equal(cost?.amount, '0.000345')
  }
})

t.test('cache writes are charged once, by their age, however a reply tells them', async (t) => {
  const gateway = await priced(t)
  const split = { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 300 }
  const both = await reply(gateway, 'messages', 'claude', message('claude', {
    input_tokens: 10, cache_read_input_tokens: 1_000, cache_creation_input_tokens: 500, cache_creation: split, output_tokens: 0,
  }))
  // 10 x 3, 1,000 x 0.3, 200 x 3.75, 300 x 6; and not 500 x 4 on top
  t.strictSame(partsOf(both), { input: '0.00003', cache_read: '0.0003', cache_write_5m: '0.00075', cache_write_1h: '0.0018' })
  t.equal(both?.amount, '0.00288')

  const plain = await reply(
    gateway, 'messages', 'claude', message('claude', { input_tokens: 10, cache_creation_input_tokens: 500, output_tokens: 0 })
  )
  t.strictSame(partsOf(plain), { input: '0.00003', cache_write: '0.002' }, 'whose age is not told')

  const hourly = await reply(gateway, 'messages', 'claude-short', message('claude-short', {
    input_tokens: 10,
    cache_creation_input_tokens: 300,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 300 },
    output_tokens: 0,
  }))
  t.strictSame(partsOf(hourly), { input: '0.00003', cache_write_1h: null }, 'an hour is never charged as five minutes')
  t.equal(hourly?.unpriced, true)

  const usage = {
    prompt_tokens: 1_000, completion_tokens: 5, total_tokens: 1_005, prompt_tokens_details: { cached_tokens: 600, cache_write_tokens: 300 },
  }
  const chat = await reply(gateway, 'chat', 'gpt-5', { headers: json, body: { id: 'c', model: 'gpt-5', choices: [], usage } })
  // Both are inside of the prompt: 100 x 1, 600 x 0.1, 300 x 1.25, 5 x 10
  t.strictSame(partsOf(chat), { input: '0.0001', cache_read: '0.00006', cache_write: '0.000375', output: '0.00005' })
  const details = {
    input_tokens: 1_000, output_tokens: 5, total_tokens: 1_005, input_tokens_details: { cached_tokens: 600, cache_write_tokens: 300 },
  }
  const response = await reply(gateway, 'responses', 'gpt-5', {
    headers: json, body: { id: 'r', object: 'response', model: 'gpt-5', status: 'completed', output: [], usage: details },
  })
  t.strictSame(partsOf(response), partsOf(chat))
})

const begun = { type: 'message_start', message: { id: 'm', model: 'claude', usage: { input_tokens: 100, output_tokens: 1 } } }

t.test('a reply costs what it told until it ended, whoever ended it', async (t) => {
  const gateway = await priced(t, 300)
  const ended = [begun, { type: 'message_delta', delta: {}, usage: { output_tokens: 20 } }, { type: 'message_stop' }]
  t.match(
    await reply(gateway, 'messages', 'claude', { headers: sse, body: events(...ended) }),
    { amount: '0.0006' },
    'to its end: 100 x 3 and 20 x 15'
  )
  const failed = events(begun, { type: 'error', error: { type: 'overloaded_error', message: 'no' } })
  t.hasStrict(
    await reply(gateway, 'messages', 'claude', { headers: sse, body: failed }), { amount: '0.000315' }, 'an error after it had begun'
  )
  const cut = events(begun, { type: 'ping' })
  t.match(
    await reply(gateway, 'messages', 'claude', { headers: sse, body: cut, cutAt: events(begun).length }),
    { amount: '0.000315' },
    'the connection broke'
  )
  t.equal(await reply(gateway, 'messages', 'claude', { headers: sse, body: cut, cutAt: 20 }), null, 'before anything was told')
  t.equal(
    await reply(gateway, 'chat', 'gpt-5', { headers: json, body: { id: 'c', choices: [], usage: null } }), null, 'nothing is told at all'
  )
  t.equal(
    await reply(gateway, 'chat', 'gpt-5', { status: 429, headers: json, body: { error: { message: 'slow' } } }),
    null,
    'refused by the provider'
  )

  const usage = { input_tokens: 100, output_tokens: 7, total_tokens: 107 }
  const incomplete = {
    type: 'response.incomplete',
    response: { id: 'r', model: 'gpt-5', status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, usage },
  }
  t.hasStrict(
    await reply(gateway, 'responses', 'gpt-5', { headers: sse, body: events(incomplete) }), { amount: '0.00017' }, 'it was too long'
  )
})

t.test('a caller that leaves does not leave without its bill', async (t) => {
  const gateway = await priced(t, 2_000)
  const url = await listen(gateway.app)
  const body = JSON.stringify({ model: 'claude', stream: true, ...questions.messages })
  const headers = { 'anthropic-version': '2023-06-01' }
  const all = events(begun, { type: 'message_delta', delta: {}, usage: { output_tokens: 20 } }, { type: 'message_stop' })
  for (const when of ['before the first byte', 'in the middle']) {
    let goOn = (): void => {}
    const left = new Promise<void>((resolve) => { goOn = resolve })
    const waits = when === 'in the middle' ? 1 : 0
    gateway.upstream.queue({ headers: sse, body: all, split: 'events', before: async (write) => { if (write === waits) await left } })
    const { request, reply } = call(`${url}/v1/messages`, { body, headers })
    await gateway.upstream.requests.next()
    if (waits === 1) {
      const [first] = await (await reply).take(1).toArray()
      t.match(String(first), 'message_start')
    }
    request.destroy()
    await new Promise((resolve) => setTimeout(resolve, 20))
    goOn()
    t.hasStrict(await gateway.cost(), { amount: '0.0006' }, when)
  }
})

t.test('an attempt that failed costs nothing; the one that answered, at the prices of its upstream, once', async (t) => {
  const ledger = memoryLedger()
  const pool = await startPool(t, {
    rules: inOrder, upstreams: [{ priceFactor: 3 }, { priceFactor: 1.1 }], gateway: { prices: { models }, limits: { ledger } },
  })
  const [first, second] = pool.members
  first?.queue(overloaded)
  second?.queue({
    headers: json, body: { id: 'c', model: 'gpt-5', choices: [], usage: { prompt_tokens: 100, completion_tokens: 1, total_tokens: 101 } },
  })
  t.equal((await ask(pool)).status, 200)
  t.hasStrict((await pool.settled.next()).cost?.exact, { amount: '0.000121', factor: '1.1' })
  const records: LedgerRecord[] = []
  for await (const record of ledger.read()) records.push(record)
  t.hasStrict(records, [{ cost: '0.000121' }])
  t.equal(records.length, 1)
})

t.test('the cost of a reply that was read to its end is the same in one piece and in single bytes', async (t) => {
  const gateway = await priced(t)
  const body = events(begun, { type: 'message_delta', delta: {}, usage: { output_tokens: 20 } }, { type: 'message_stop' })
  t.hasStrict(await reply(gateway, 'messages', 'claude', { headers: sse, body, split: 'bytes' }), { amount: '0.0006' })
})
