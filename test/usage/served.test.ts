/** How a reply says it was served, and what it counts beside tokens: as data of the protocols, read whole, split and streamed. */
import t from 'tap'
import type { Served } from '../../plugins/core/money/cost.js'
import { bytesOf, meter } from './meter-reply.js'

const chat = {
  id: 'c', model: 'm', choices: [{ finish_reason: 'stop' }], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
}
const messages = { id: 'm', type: 'message', model: 'm', stop_reason: 'end_turn', usage: { input_tokens: 3, output_tokens: 2 } }
const gemini = {
  responseId: 'g',
  modelVersion: 'm',
  candidates: [{ finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
}
const responses = {
  id: 'r', object: 'response', status: 'completed', model: 'm', usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
}

const search = (type: string): object => ({ id: 'ws', type: 'web_search_call', status: 'completed', action: { type, query: 'q' } })
const ranIn = (container: string): object => ({ id: 'ci', type: 'code_interpreter_call', code: 'x', container_id: container })
const said = { id: 'msg', type: 'message', content: [{ type: 'output_text', text: 'web_search_call' }] }
const nothing = { tier: null, speed: null, region: null, counts: {}, tools: null, statedCost: null }

interface Case {
  name: string
  protocol: string
  reply: object
  headers?: Record<string, string>
  served: Partial<Served> | null
}

const cases: readonly Case[] = [
  { name: 'nothing', protocol: 'chat_completions', reply: chat, served: null },
  { name: 'the tier that served it', protocol: 'chat_completions', reply: { ...chat, service_tier: 'flex' }, served: { tier: 'flex' } },
  { name: 'default is standard', protocol: 'chat_completions', reply: { ...chat, service_tier: 'default' }, served: { tier: 'standard' } },
  { name: 'fast is priority', protocol: 'chat_completions', reply: { service_tier: 'fast', ...chat }, served: { tier: 'priority' } },
  { name: 'no tier', protocol: 'chat_completions', reply: { ...chat, service_tier: null }, served: null },
  {
    name: 'a stated cost',
    protocol: 'chat_completions',
    reply: { ...chat, usage: { ...chat.usage, cost: 0.00014 } },
    served: { statedCost: '0.00014' },
  },
  {
    name: 'a stated cost in ticks',
    protocol: 'chat_completions',
    reply: { ...chat, usage: { ...chat.usage, cost_in_usd_ticks: 1466250 } },
    served: { statedCost: '0.000146625' },
  },
  {
    name: 'searches of a research that its usage counts',
    protocol: 'chat_completions',
    reply: { ...chat, usage: { ...chat.usage, citation_tokens: 90, num_search_queries: 21, reasoning_tokens: 700 } },
    served: { counts: { search: 21 } },
  },
  {
    name: 'searches of which one place tells none',
    protocol: 'chat_completions',
    reply: { ...chat, usage: { ...chat.usage, server_tool_use: { web_search_requests: 3 }, num_search_queries: 0 } },
    served: { counts: { search: 3 } },
  },
  {
    name: 'a stated cost of several parts',
    protocol: 'responses',
    reply: { ...responses, usage: { ...responses.usage, cost: { currency: 'USD', input_cost: 0.001, total_cost: 0.0055 } } },
    served: { statedCost: '0.0055' },
  },
  {
    name: 'a stated cost of a message',
    protocol: 'messages',
    reply: { ...messages, usage: { ...messages.usage, cost: 0.0125, is_byok: false } },
    served: { statedCost: '0.0125' },
  },
  {
    name: 'the kind of traffic of a chat',
    protocol: 'chat_completions',
    reply: { ...chat, usage: { ...chat.usage, extra_properties: { google: { traffic_type: 'ON_DEMAND_PRIORITY' } } } },
    served: { tier: 'priority' },
  },
  {
    name: 'no tier in particular',
    protocol: 'generate_content',
    reply: { ...gemini, usageMetadata: { ...gemini.usageMetadata, serviceTier: 'unspecified' } },
    served: { tier: 'standard' },
  },
  {
    name: 'a stated cost that is none',
    protocol: 'chat_completions',
    reply: { ...chat, usage: { ...chat.usage, cost: 'free', cost_in_usd_ticks: -3 } },
    served: null,
  },
  {
    name: 'seconds',
    protocol: 'chat_completions',
    reply: { ...chat, usage: { type: 'duration', seconds: 12.5 } },
    served: { counts: { second: 12.5 } },
  },
  {
    name: 'tier, speed and region of a message',
    protocol: 'messages',
    reply: { ...messages, usage: { ...messages.usage, service_tier: 'standard', speed: 'fast', inference_geo: 'us' } },
    served: { tier: 'standard', speed: 'fast', region: 'us' },
  },
  {
    name: 'a region alone',
    protocol: 'messages',
    reply: { ...messages, usage: { ...messages.usage, inference_geo: 'us' } },
    served: { region: 'us' },
  },
  {
    name: 'a speed alone',
    protocol: 'messages',
    reply: { ...messages, usage: { ...messages.usage, speed: 'fast' } },
    served: { speed: 'fast' },
  },
  {
    name: 'no region in particular',
    protocol: 'messages',
    reply: { ...messages, usage: { ...messages.usage, service_tier: 'batch', inference_geo: 'not_available' } },
    served: { tier: 'batch', region: 'standard' },
  },
  {
    name: 'searches of a message',
    protocol: 'messages',
    reply: { ...messages, usage: { ...messages.usage, server_tool_use: { web_search_requests: 3, web_fetch_requests: 1 } } },
    served: { counts: { search: 3 } },
  },
  {
    name: 'searches that failed',
    protocol: 'messages',
    reply: { ...messages, usage: { ...messages.usage, server_tool_use: { web_search_requests: 0 } } },
    served: { counts: { search: 0 } },
  },
  {
    name: 'a tier in a header',
    protocol: 'generate_content',
    reply: gemini,
    headers: { 'x-gemini-service-tier': 'Priority' },
    served: { tier: 'priority' },
  },
  {
    name: 'the kind of traffic',
    protocol: 'generate_content',
    reply: { ...gemini, usageMetadata: { ...gemini.usageMetadata, trafficType: 'ON_DEMAND' } },
    served: { tier: 'standard' },
  },
  {
    name: 'the kind of traffic, with a header',
    protocol: 'generate_content',
    reply: { ...gemini, usageMetadata: { ...gemini.usageMetadata, trafficType: 'ON_DEMAND_FLEX' } },
    headers: { 'x-gemini-service-tier': 'priority' },
    served: { tier: 'flex' },
  },
  {
    name: 'queries of a grounded reply',
    protocol: 'generate_content',
    reply: { ...gemini, candidates: [{ finishReason: 'STOP', groundingMetadata: { webSearchQueries: ['a', 'b'] } }] },
    served: { counts: { search: 2 } },
  },
  {
    name: 'a query that was made again, and empty ones',
    protocol: 'generate_content',
    reply: { ...gemini, candidates: [{ finishReason: 'STOP', groundingMetadata: { webSearchQueries: ['', 'a', 'b', '', 'a'] } }] },
    served: { counts: { search: 2 } },
  },
  {
    name: 'empty queries alone',
    protocol: 'generate_content',
    reply: { ...gemini, candidates: [{ finishReason: 'STOP', groundingMetadata: { webSearchQueries: ['', ''] } }] },
    served: null,
  },
  {
    name: 'a reply grounded in nothing',
    protocol: 'generate_content',
    reply: { ...gemini, candidates: [{ finishReason: 'STOP', groundingMetadata: { webSearchQueries: [] } }] },
    served: null,
  },
  {
    name: 'queries for images beside those of the web, of which one is the same',
    protocol: 'generate_content',
    reply: { ...gemini, candidates: [{ groundingMetadata: { webSearchQueries: ['a', 'b'], imageSearchQueries: ['', 'a', 'c', 'a'] } }] },
    served: { counts: { search: 4 } },
  },
  {
    name: 'seconds of sound in a chat',
    protocol: 'chat_completions',
    reply: { ...chat, usage: { ...chat.usage, prompt_audio_seconds: 203 } },
    served: { counts: { second: 203 } },
  },
  {
    name: 'searches of the web and of posts, and runs of code',
    protocol: 'responses',
    reply: {
      ...responses,
      output: [search('search')],
      usage: { ...responses.usage, server_side_tool_usage_details: { web_search_calls: 2, x_search_calls: 3, code_interpreter_calls: 4 } },
    },
    served: { counts: { search: 5, container: 4 } },
  },
  {
    name: 'searches of posts alone',
    protocol: 'responses',
    reply: { ...responses, usage: { ...responses.usage, server_side_tool_usage_details: { x_search_calls: 3 } } },
    served: { counts: { search: 3 } },
  },
  {
    name: 'containers in which code ran, each once',
    protocol: 'responses',
    reply: {
      ...responses,
      tools: [{ type: 'code_interpreter', container: { type: 'auto' } }, { type: 'shell', environment: { type: 'local' } }],
      output: [...['a', 'a', 'b'].map(ranIn), { type: 'shell_call', environment: { type: 'local' } }, said],
    },
    served: { counts: { container: 2 } },
  },
  {
    name: 'a container in gigabytes',
    protocol: 'responses',
    reply: {
      ...responses,
      output: [{ type: 'shell_call', environment: { type: 'container_reference', container_id: 'a' } }],
      tools: [{ type: 'shell', environment: { type: 'container_auto', memory_limit: '4g' } }],
    },
    served: { counts: { container: 4 } },
  },
  {
    name: 'a container that nothing ran in',
    protocol: 'responses',
    reply: { ...responses, tools: [{ type: 'code_interpreter', container: { type: 'auto', memory_limit: '64g' } }], output: [said] },
    served: null,
  },
  {
    name: 'a tool that was declared and not used',
    protocol: 'responses',
    reply: { ...responses, tools: [{ type: 'web_search' }], output: [said] },
    served: null,
  },
  {
    name: 'three searches',
    protocol: 'responses',
    reply: { ...responses, output: [search('search'), search('search'), said, search('search')] },
    served: { counts: { search: 3 } },
  },
  {
    name: 'searches of all candidates',
    protocol: 'generate_content.generateContent',
    reply: {
      ...gemini,
      candidates: [['a', 'b', 'c'], ['d'], []].map((webSearchQueries) => ({ groundingMetadata: { webSearchQueries } })),
    },
    served: { counts: { search: 4 } },
  },
  {
    name: 'more searches than any reply has',
    protocol: 'messages',
    reply: { ...messages, usage: { ...messages.usage, server_tool_use: { web_search_requests: 1e20 } } },
    served: null,
  },
  {
    name: 'pages opened are no searches',
    protocol: 'responses',
    reply: { ...responses, output: [search('open_page'), search('search'), search('find_in_page'), search('find')] },
    served: { counts: { search: 1 } },
  },
  {
    name: 'what the provider says of its searches stands before their calls',
    protocol: 'responses',
    reply: { ...responses, output: [search('search'), search('search')], tool_usage: { web_search: { num_requests: 1 } } },
    served: { counts: { search: 1 } },
  },
  {
    name: 'searches that are told and not in the output',
    protocol: 'responses',
    reply: { ...responses, output: [], tool_usage: { web_search: { num_requests: 3 } } },
    served: { counts: { search: 3 } },
  },
  {
    name: 'searches that the provider does not charge',
    protocol: 'responses',
    reply: { ...responses, output: [search('search')], tool_usage: { web_search: { num_requests: 0 } } },
    served: null,
  },
  {
    name: 'a count of searches that is none',
    protocol: 'responses',
    reply: { ...responses, output: [search('search')], tool_usage: { web_search: { num_requests: -1 } } },
    served: { counts: { search: 1 } },
  },
  {
    name: 'calls of tools that were successful',
    protocol: 'responses',
    reply: {
      ...responses,
      output: [search('open_page'), search('search'), { type: 'file_search_call' }, { type: 'file_search_call' }],
      usage: { ...responses.usage, server_side_tool_usage_details: { web_search_calls: 2, x_search_calls: 0, file_search_calls: 1 } },
    },
    served: { counts: { search: 2, file_search: 1 } },
  },
  {
    name: 'searches of an agent',
    protocol: 'responses',
    reply: {
      ...responses,
      output: [{ type: 'search_results', queries: ['a'], results: [] }],
      usage: { ...responses.usage, tool_calls_details: { search_web: { cost_usd: 0.005, invocation: 2 }, fetch_url: { invocation: 1 } } },
    },
    served: { counts: { search: 2 } },
  },
  {
    name: 'searches of an aggregator',
    protocol: 'chat_completions',
    reply: { ...chat, usage: { ...chat.usage, server_tool_use_details: { tool_calls_executed: 2, web_search_requests: 2 } } },
    served: { counts: { search: 2 } },
  },
  {
    name: 'searches at Alibaba in a chat',
    protocol: 'chat_completions',
    reply: { ...chat, usage: { ...chat.usage, plugins: { search: { count: 2, strategy: 'agent' } } } },
    served: { counts: { search: 2 } },
  },
  {
    name: 'searches at Alibaba in a response',
    protocol: 'responses',
    reply: { ...responses, output: [], usage: { ...responses.usage, x_tools: { web_search: { count: 3 }, web_extractor: {} } } },
    served: { counts: { search: 3 } },
  },
  {
    name: 'searches of an aggregator by their older name',
    protocol: 'responses',
    reply: { ...responses, usage: { ...responses.usage, server_tool_use: { web_search_requests: 4 } } },
    served: { counts: { search: 4 } },
  },
  {
    name: 'only pages opened',
    protocol: 'responses',
    reply: { ...responses, output: [search('open_page')] },
    served: { counts: { search: 0 } },
  },
  {
    name: 'web and file searches',
    protocol: 'responses',
    reply: { ...responses, output: [search('search'), { id: 'fs', type: 'file_search_call' }, { id: 'fs', type: 'file_search_call' }] },
    served: { counts: { search: 1, file_search: 2 } },
  },
  {
    name: 'a tier of a response',
    protocol: 'responses',
    reply: { ...responses, service_tier: 'priority', output: [] },
    served: { tier: 'priority' },
  },
  { name: 'pictures', protocol: 'images', reply: { created: 1, data: [{ url: 'a' }, { url: 'b' }] }, served: { counts: { image: 2 } } },
]

for (const { name, protocol, reply, headers = {}, served } of cases) {
  t.test(`${protocol}: ${name}`, async (t) => {
    const bytes = Buffer.from(JSON.stringify(reply))
    const wanted = served === null ? null : { ...nothing, ...served }
    t.strictSame(meter(protocol, [bytes], headers).llm.usage.served, wanted)
    t.strictSame(meter(protocol, bytesOf(bytes), headers).llm.usage.served, wanted, 'byte by byte')
    const last = Buffer.from(`event: response.completed\ndata: ${JSON.stringify({ type: 'response.completed', response: reply })}\n\n`)
    if (protocol === 'responses') t.strictSame(meter(protocol, [last]).llm.usage.served, wanted, 'as the last event of a stream')
  })
}

t.test('each word for a tier means that one', async (t) => {
  const words: ReadonlyArray<readonly [word: string, tier: string, protocols?: readonly string[]]> = [
    ['auto', 'standard', ['chat_completions', 'responses']], ['default', 'standard', ['chat_completions', 'responses']],
    ['fast', 'priority', ['chat_completions', 'responses']], ['TRAFFIC_TYPE_UNSPECIFIED', 'standard', ['generate_content']],
    ['ON_DEMAND', 'standard'], ['ON_DEMAND_PRIORITY', 'priority'], ['ON_DEMAND_FLEX', 'flex'], ['batch', 'batch'],
    // Names that every object has.
    ['constructor', 'constructor'], ['__proto__', '__proto__'],
  ]
  for (const [word, tier, protocols = ['chat_completions', 'responses', 'generate_content']] of words) {
    for (const protocol of protocols) {
      const reply = protocol === 'generate_content'
        ? { ...gemini, usageMetadata: { ...gemini.usageMetadata, trafficType: word } }
        : { ...protocol === 'responses' ? responses : chat, service_tier: word }
      t.equal(meter(protocol, [Buffer.from(JSON.stringify(reply))]).llm.usage.served?.tier, tier, `${protocol}: ${word}`)
    }
  }
})

t.test('the last event of a stream tells the tier, and each search once', async (t) => {
  const events = [
    { type: 'response.created', response: { ...responses, service_tier: 'auto', usage: null, output: [] } },
    { type: 'response.output_item.added', item: search('search') },
    { type: 'response.output_item.done', item: search('search') },
    { type: 'response.completed', response: { ...responses, service_tier: 'flex', output: [search('search'), said] } },
  ]
  const bytes = Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
  for (const pieces of [[bytes], bytesOf(bytes)]) {
    t.strictSame(meter('responses', pieces, { 'content-type': 'text/event-stream' }).llm.usage.served, {
      ...nothing, tier: 'flex', counts: { search: 1 },
    })
  }
})

t.test('the last event of a stream tells the containers and their memory', async (t) => {
  const tools = [{ type: 'code_interpreter', container: { type: 'auto', memory_limit: '16g' } }]
  const events = [
    { type: 'response.created', response: { ...responses, usage: null, output: [], tools } },
    { type: 'response.output_item.done', item: ranIn('a') },
    { type: 'response.completed', response: { ...responses, output: [ranIn('a'), ranIn('a')], tools } },
  ]
  const bytes = Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
  for (const pieces of [[bytes], bytesOf(bytes)]) {
    const { llm } = meter('responses', pieces, { 'content-type': 'text/event-stream' })
    t.strictSame(llm.usage.served?.counts, { container: 16 })
  }
})

t.test('a later event that has no searches takes none back', async (t) => {
  const events = [['a', 'b'], []].map((webSearchQueries) => ({ ...gemini, candidates: [{ groundingMetadata: { webSearchQueries } }] }))
  const bytes = Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
  for (const pieces of [[bytes], bytesOf(bytes)]) {
    const { llm } = meter('generate_content.streamGenerateContent', pieces, { 'content-type': 'text/event-stream' })
    t.strictSame(llm.usage.served?.counts, { search: 2 })
  }
})

t.test('queries of several events count once each, and more than any reply has do not', async (t) => {
  const streamed = (...queries: string[][]): unknown => {
    const bytes = Buffer.from(queries.map((webSearchQueries) => {
      return `data: ${JSON.stringify({ ...gemini, candidates: [{ groundingMetadata: { webSearchQueries } }] })}\n\n`
    }).join(''))
    return meter('generate_content.streamGenerateContent', [bytes], { 'content-type': 'text/event-stream' }).llm.usage.served?.counts
  }
  t.strictSame(streamed(['a', 'b'], ['b', 'c', '']), { search: 3 })
  const many = (from: number): string[] => Array.from({ length: 600 }, (_, index) => `query ${from + index}`)
  t.strictSame(streamed(many(0), many(600)), { search: 1_000 })
})

t.test('places of Google Maps in several events count as one search, beside queries', async (t) => {
  const streamed = (...grounding: object[]): unknown => {
    const events = grounding.map((groundingMetadata) => ({ ...gemini, candidates: [{ groundingMetadata }] }))
    const bytes = Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
    return meter('generate_content.streamGenerateContent', [bytes], { 'content-type': 'text/event-stream' }).llm.usage.served?.counts
  }
  const found = (...uris: string[]): object => ({ groundingChunks: uris.map((uri) => ({ maps: { uri } })) })
  t.strictSame(streamed(found('a', 'b'), found('c')), { search: 1 })
  t.strictSame(streamed(found('a'), { webSearchQueries: ['x', 'y'] }), { search: 3 })
  t.strictSame(streamed({ groundingChunks: [{ web: { uri: 'a' } }] }), undefined)
})

t.test('a stream of messages tells its tier at its start', async (t) => {
  const events = [
    {
      type: 'message_start',
      message: { id: 'm', model: 'm', usage: { input_tokens: 3, output_tokens: 1, service_tier: 'standard', speed: 'fast' } },
    },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7, server_tool_use: { web_search_requests: 2 } } },
    { type: 'message_stop' },
  ]
  const bytes = Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
  t.strictSame(meter('messages', [bytes], { 'content-type': 'text/event-stream' }).llm.usage.served, {
    ...nothing, tier: 'standard', speed: 'fast', counts: { search: 2 },
  })
})

t.test('tokens of tools with models of their own are told apart', async (t) => {
  const reply = {
    ...responses, tool_usage: { image_gen: { input_tokens: 50, output_tokens: 1000, output_tokens_details: { image_tokens: 1000 } } },
  }
  const { llm } = meter('responses', [Buffer.from(JSON.stringify(reply))])
  t.match(llm.usage.tokens, { input: 53, output: 1002 })
  t.match(llm.usage.served?.tools, {
    usage: { input: 50, output: 1000 }, modalities: [{ direction: 'output', modality: 'image', tokens: 1000 }],
  })
  const own = { ...reply, usage: { ...responses.usage, output_tokens_details: { image_tokens: 2 } } }
  t.equal(meter('responses', [Buffer.from(JSON.stringify(own))]).llm.usage.served, null, 'not where the reply\'s own usage holds them')
})

t.test('an advisor\'s tokens stay beside those of the model that it advised, in streams, too', async (t) => {
  const advice = { type: 'advisor_message', input_tokens: 2_728, output_tokens: 874, cache_read_input_tokens: 5, model: 'dear' }
  const iterations = [{ type: 'message', input_tokens: 10, output_tokens: 2 }, advice, { ...advice, output_tokens: 1 }]
  const usage = { input_tokens: 10, output_tokens: 2, iterations }
  const start = { input_tokens: 10, output_tokens: 1, iterations: null }
  const events = [{ type: 'message_start', message: { usage: start } }, { type: 'message_delta', usage }]
  const stream = Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
  for (const { llm } of [
    meter('messages', [Buffer.from(JSON.stringify({ model: 'm', usage }))]),
    meter('messages', [stream], { 'content-type': 'text/event-stream' }),
  ]) {
    t.match(llm.usage.tokens, { input: 10, cache_read: 0, output: 2 })
    t.match(llm.usage.served?.tools, { usage: { input: 5_456, cache_read: 10, output: 875 }, model: 'dear' })
  }
})

t.test('what wrote an SVG is told apart from what drew it, and all of it adds up', async (t) => {
  const svg = { input_tokens: 1_000, output_tokens: 10_000, total_tokens: 11_000 }
  const drawn = { created: 1, data: [{ b64_json: '' }], usage: { input_tokens: 10, output_tokens: 100, total_tokens: 110 }, svg_usage: svg }
  const picture = meter('images', [Buffer.from(JSON.stringify(drawn))]).llm.usage
  t.match(picture.tokens, { input: 1_010, output: 10_100 })
  t.match(picture.served?.tools, { usage: { input: 1_000, output: 10_000 } })
  t.strictSame(picture.served?.tools?.modalities, [])
  const call = { type: 'image_generation_call', status: 'completed', svg_usage: svg }
  const reply = { ...responses, output: [call, said, call], tool_usage: { image_gen: { input_tokens: 50, output_tokens: 60 } } }
  for (const pieces of [[Buffer.from(JSON.stringify(reply))], bytesOf(Buffer.from(JSON.stringify(reply)))]) {
    const { usage } = meter('responses', pieces).llm
    t.match(usage.served?.tools?.usage, { input: 2_050, output: 20_060 })
    t.match(usage.tokens, { input: 2_053, output: 20_062 })
  }
})

t.test('an SVG of each picture of a stream is counted, and beside pictures of the reply\'s own', async (t) => {
  const usage = { input_tokens: 10, output_tokens: 100, total_tokens: 110 }
  const event = { type: 'image_generation.completed', usage, svg_usage: { input_tokens: 1_000, output_tokens: 10_000 } }
  const bytes = Buffer.from([event, event].map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`).join(''))
  t.match(meter('images', [bytes], { 'content-type': 'text/event-stream' }).llm.usage.tokens, { input: 2_020, output: 20_200 })
  const own = { ...responses.usage, output_tokens_details: { image_tokens: 2 } }
  const reply = { ...responses, usage: own, output: [{ type: 'image_generation_call', svg_usage: event.svg_usage }] }
  t.match(meter('responses', [Buffer.from(JSON.stringify(reply))]).llm.usage.served?.tools?.usage, { input: 1_000, output: 10_000 })
})

t.test('a text that is no tier of anything does not travel on whole', async (t) => {
  const long = 'X'.repeat(1_000)
  const replies: ReadonlyArray<readonly [protocol: string, reply: object, headers?: Record<string, string>]> = [
    ['chat_completions', { ...chat, service_tier: long }],
    ['messages', { ...messages, usage: { ...messages.usage, service_tier: long } }],
    ['generate_content', gemini, { 'x-gemini-service-tier': long }],
  ]
  for (const [protocol, reply, headers] of replies) {
    const { served } = meter(protocol, [Buffer.from(JSON.stringify(reply))], headers).llm.usage
    t.equal(served?.tier, 'x'.repeat(256), protocol)
  }
})

t.test('more than a thousand items are not kept', async (t) => {
  const output = Array.from({ length: 1_200 }, () => search('search'))
  t.equal(meter('responses', [Buffer.from(JSON.stringify({ ...responses, output }))]).llm.usage.served?.counts.search, 1_000)
})
