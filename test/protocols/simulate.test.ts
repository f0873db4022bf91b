import { inflateSync } from 'node:zlib'
import t from 'tap'
import { endpoints } from '../../plugins/protocols/index.js'
import { field, pieces, text } from '../../plugins/protocols/simulate-text.js'
import { simulations, type Ask, type Simulation } from '../../plugins/protocols/simulate.js'

const names = [...simulations.keys()]

function simulation (id: string): Simulation {
  const found = simulations.get(id)
  if (found === undefined) throw new Error(`no simulation of ${id}`)
  return found
}

function ask (body: unknown, named: string | null = null): Ask {
  return { id: 'x1', named, createdAt: 1_790_000_000, model: 'some-model', body }
}

function reply (id: string, body: unknown): Record<string, unknown> {
  return simulation(id).reply(ask(body))
}

function eventData (id: string, body: unknown): unknown[] {
  return simulation(id).events?.(ask(body)).map(({ data }) => data) ?? []
}

const chat = { model: 'some-model', messages: [{ role: 'user', content: 'hello there' }] }
const gemini = { contents: [{ parts: [{ text: 'hello there' }] }] }

t.test('every endpoint has a simulation, and every streamed one its events', async (t) => {
  t.same(endpoints.filter(({ id }) => !names.includes(id)).map(({ id }) => id), [])
  for (const { id, method, streams, replays } of endpoints) {
    // What ends a response tells of it as a document alone.
    t.equal(simulation(id).events !== undefined, streams !== 'never' || (replays !== null && method === 'GET'), id)
  }
  t.same(names.filter((id) => id.startsWith('models.')).sort(), [
    'models.anthropic', 'models.anthropic.retrieve', 'models.gemini', 'models.gemini.retrieve', 'models.openai', 'models.openai.retrieve',
  ])
})

t.test('the model comes back where the protocol names it', async (t) => {
  for (const id of ['chat_completions', 'responses', 'embeddings', 'messages']) t.equal(reply(id, chat).model, 'some-model', id)
  t.equal(reply('generate_content.generateContent', gemini).modelVersion, 'some-model')
  t.equal(reply('models.openai.retrieve', null).id, 'some-model')
  t.equal(reply('models.anthropic.retrieve', null).id, 'some-model')
  t.equal(reply('models.gemini.retrieve', null).name, 'models/some-model')
})

t.test('totals are the sums of their parts', async (t) => {
  const at = (id: string, body: unknown, ...path: string[]): number => Number(field(reply(id, body), ...path))
  t.equal(at('chat_completions', chat, 'usage', 'total_tokens'),
    at('chat_completions', chat, 'usage', 'prompt_tokens') + at('chat_completions', chat, 'usage', 'completion_tokens'))
  for (const [id, body] of [
    ['responses', { input: 'a' }], ['responses.compact', { input: 'a' }], ['images', { prompt: 'a', n: 3 }],
  ] as const) {
    t.equal(at(id, body, 'usage', 'total_tokens'), at(id, body, 'usage', 'input_tokens') + at(id, body, 'usage', 'output_tokens'), id)
  }
  const usage = (name: string): number => at('generate_content.generateContent', gemini, 'usageMetadata', name)
  t.equal(usage('totalTokenCount'), usage('promptTokenCount') + usage('candidatesTokenCount') + usage('thoughtsTokenCount'))
})

t.test('a stream ends with the text and usage of the whole reply', async (t) => {
  const text = (data: readonly unknown[], ...path: string[]): string => data.map((event) => field(event, ...path) ?? '').join('')
  const chatEvents = eventData('chat_completions', { ...chat, stream_options: { include_usage: true } })
  t.equal(text(chatEvents, 'choices', '0', 'delta', 'content'), pieces.join(''))
  t.same(field(chatEvents.at(-2), 'usage'), reply('chat_completions', chat).usage)
  t.equal(chatEvents.at(-1), '[DONE]')
  t.ok(chatEvents.slice(0, -2).every((event) => field(event, 'usage') === null), 'other chunks say null')

  const plain = eventData('chat_completions', chat)
  t.ok(plain.every((event) => field(event, 'usage') === undefined), 'no usage where it was not asked for')
  t.equal(plain.length, chatEvents.length - 1)

  const responseEvents = eventData('responses', { input: 'a' })
  t.equal(text(responseEvents, 'delta'), pieces.join(''))
  t.same(responseEvents.map((event) => field(event, 'sequence_number')), responseEvents.map((_, index) => index))
  t.same(field(responseEvents.at(-1), 'response'), reply('responses', { input: 'a' }))

  const messageEvents = eventData('messages', chat)
  t.equal(text(messageEvents, 'delta', 'text'), pieces.join(''))
  t.equal(field(messageEvents[0], 'message', 'usage', 'input_tokens'), field(reply('messages', chat), 'usage', 'input_tokens'))
  t.equal(field(messageEvents.at(-2), 'usage', 'output_tokens'), field(reply('messages', chat), 'usage', 'output_tokens'))

  const geminiEvents = eventData('generate_content.streamGenerateContent', gemini)
  t.equal(text(geminiEvents, 'candidates', '0', 'content', 'parts', '0', 'text'), pieces.join(''))
  t.same(field(geminiEvents.at(-1), 'usageMetadata'), reply('generate_content.generateContent', gemini).usageMetadata)
  t.equal(field(geminiEvents.at(-1), 'candidates', '0', 'finishReason'), 'STOP')

  for (const id of ['images', 'images.edits']) {
    t.same(field(eventData(id, { prompt: 'a' }).at(-1), 'usage'), reply(id, { prompt: 'a' }).usage, id)
  }
})

t.test('typed events carry their type as event name', async (t) => {
  for (const id of ['responses', 'messages', 'images']) {
    for (const { event, data } of simulation(id).events?.(ask(chat)) ?? []) t.equal(event, field(data, 'type'), id)
  }
})

t.test('a thinking budget of 0 switches thinking off', async (t) => {
  const thoughts = (body: object): unknown => field(
    reply('generate_content.generateContent', { ...gemini, ...body }), 'usageMetadata', 'thoughtsTokenCount'
  )
  t.ok(Number(thoughts({})) > 0)
  t.ok(Number(thoughts({ generationConfig: { thinkingConfig: { thinkingBudget: 512 } } })) > 0)
  t.equal(thoughts({ generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }), 0)
  t.equal(thoughts({ generationConfig: { thinkingConfig: { thinkingBudget: '0' } } }), 0)
  t.ok(Number(thoughts({ generationConfig: { thinkingConfig: { thinkingBudget: null } } })) > 0)
  t.equal(thoughts({ generation_config: { thinking_config: { thinking_budget: 0 } } }), 0)
})

t.test('fields that clients look for stand in the replies', async (t) => {
  t.match(reply('responses', { input: 'a' }), { service_tier: 'default', completed_at: 1_790_000_000 })
  t.equal(simulation('responses.cancel').reply(ask(null, 'resp_9')).completed_at, null)
  const whole = reply('messages', chat)
  t.match(whole, {
    content: [{ type: 'text', text, citations: [] }],
    stop_details: null,
    usage: { service_tier: 'standard', inference_geo: 'global', output_tokens_details: { thinking_tokens: 0 } },
    context_management: { applied_edits: [] },
  })
  const events = eventData('messages', chat)
  t.match(events[0], { message: { stop_details: null, context_management: null, usage: { inference_geo: 'global' } } })
  t.match(events.at(-2), {
    delta: { stop_details: null }, context_management: { applied_edits: [] }, usage: { output_tokens_details: { thinking_tokens: 0 } },
  })
  const blocks = events.filter((event) => field(event, 'type') === 'content_block_start')
  t.match(blocks, [{ index: 0, content_block: { citations: { length: 0 } } }])
})

t.test('a message that thinks has its signed block and counts it in the output', async (t) => {
  for (const type of ['enabled', 'adaptive']) {
    const asked = { ...chat, thinking: { type } }
    const whole = reply('messages', asked)
    t.match(whole, { content: [{ type: 'thinking', thinking: '', signature: 'c2ltdWxhdGVk' }, { type: 'text' }] })
    t.match(whole.usage, { output_tokens: pieces.length + 16, output_tokens_details: { thinking_tokens: 16 } })
    const events = eventData('messages', asked)
    t.match(events.at(-2), { usage: { output_tokens: pieces.length + 16, output_tokens_details: { thinking_tokens: 16 } } })
    t.ok(events.some((event) => field(event, 'delta', 'signature') === 'c2ltdWxhdGVk' && field(event, 'index') === 0))
    t.ok(events.every((event) => field(event, 'delta', 'text') === undefined || field(event, 'index') === 1))
  }
  t.match(reply('messages', { ...chat, thinking: { type: 'disabled' } }), { content: [{ type: 'text' }] })
})

t.test('the last part of a thinking candidate is signed, and no other', async (t) => {
  const signed = (data: unknown): unknown => field(data, 'candidates', '0', 'content', 'parts', '0', 'thoughtSignature')
  const off = { ...gemini, generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }
  const streamed = (body: object): unknown[] => eventData('generate_content.streamGenerateContent', body).map(signed)
  t.equal(signed(reply('generate_content.generateContent', gemini)), 'c2ltdWxhdGVk')
  t.equal(signed(reply('generate_content.generateContent', off)), undefined)
  t.same(streamed(gemini).filter((signature) => signature !== undefined), ['c2ltdWxhdGVk'])
  t.equal(streamed(gemini).at(-1), 'c2ltdWxhdGVk')
  t.ok(streamed(off).every((signature) => signature === undefined))
})

/** Width and height in a PNG's header, and that of its rows, which are one bit a pixel. */
function pixels (base64: unknown): { size: string, rows: number } {
  const png = Buffer.from(String(base64), 'base64')
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)]
  const at = png.indexOf('IDAT')
  const contents = inflateSync(png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4)))
  return { size: `${width}x${height}`, rows: contents.length / (Math.ceil(width / 8) + 1) }
}

t.test('a picture has the size that is told, which is the one that was asked for', async (t) => {
  const sizes = [
    ['1024x1024', '1024x1024'], ['1536x1024', '1536x1024'], ['1x4096', '1x4096'], ['9x3', '9x3'], ['auto', '1024x1024'],
    [undefined, '1024x1024'],
    [null, '1024x1024'], ['0x5', '1024x1024'], ['5000x5', '1024x1024'], ['99999x99999', '1024x1024'], [1024, '1024x1024'],
  ]
  for (const [asked, told] of sizes) {
    const body = { prompt: 'a', n: 2, size: asked, output_format: 'webp' }
    const whole = reply('images', body)
    t.match(whole, { size: told, output_format: 'png', data: [{ size: told, model: 'some-model' }, {}] }, String(asked))
    const images = [whole.data].flat()
    t.same(images.map((image) => field(image, 'generation_id')), ['gen_x1_0', 'gen_x1_1'])
    for (const image of [...images, ...eventData('images', body)]) {
      t.same(pixels(field(image, 'b64_json')), { size: told, rows: Number(String(told).split('x')[1]) }, String(asked))
      t.equal(field(image, 'size'), told)
    }
  }
})

t.test('replies are as many as were asked for', async (t) => {
  const count = (id: string, body: unknown, name: string): unknown => field(reply(id, body), name, 'length')
  t.equal(count('images', { prompt: 'a', n: 3 }, 'data'), 3)
  t.equal(count('images', { prompt: 'a', n: 1e9 }, 'data'), 10)
  t.equal(count('images.edits', null, 'data'), 1)
  t.equal(count('embeddings', { input: ['a', 'b'] }, 'data'), 2)
  t.equal(count('embeddings', { input: 'a' }, 'data'), 1)
  t.equal(count('embeddings', { input: [1, 2, 3] }, 'data'), 1)
  t.equal(count('generate_content.batchEmbedContents', { requests: [{}, {}, {}] }, 'embeddings'), 3)
})

t.test('embeddings come as numbers or as base64 of the same numbers', async (t) => {
  const embedding = (format: string): unknown => field(
    reply('embeddings', { input: 'a', dimensions: 4, encoding_format: format }), 'data', '0', 'embedding'
  )
  const numbers = embedding('float')
  t.ok(Array.isArray(numbers) && numbers.length === 4)
  const bytes = Buffer.from(String(embedding('base64')), 'base64')
  t.same([0, 4, 8, 12].map((at) => bytes.readFloatLE(at)), [numbers].flat().map((number) => Math.fround(Number(number))))
})

t.test('endpoints beside the main ones answer in their own form', async (t) => {
  const stored = (id: string): Record<string, unknown> => simulation(id).reply(ask(null, 'resp_9'))
  t.match(reply('responses', { input: 'a' }), { id: 'resp_x1' })
  t.match(stored('responses.retrieve'), { id: 'resp_9', status: 'completed' })
  t.match(stored('responses.cancel'), { id: 'resp_9', status: 'cancelled', usage: null })
  t.match(stored('responses.delete'), { id: 'resp_9', deleted: true })
  t.match(reply('responses.input_items', null), { object: 'list', data: { length: 0 } })
  t.match(reply('responses.input_tokens', { input: 'abcdef' }), { input_tokens: 2 })
  t.match(reply('messages.count_tokens', chat), { input_tokens: Number })
  t.match(reply('generate_content.countTokens', gemini), { totalTokens: Number })
  t.match(reply('generate_content.embedContent', gemini), { embedding: { values: [Number] } })
  t.match(reply('models.openai', null), { object: 'list', data: [{ object: 'model' }] })
  t.match(reply('models.anthropic', null), { data: [{ type: 'model' }], has_more: false })
  t.match(reply('models.gemini', null), { models: [{ name: /^models\// }] })
  t.match(reply('images.variations', null), { data: [{ b64_json: String }] })
  t.match(reply('responses', { instructions: 'be brief' }), { instructions: 'be brief', output: [{ content: [{ text }] }] })
})
