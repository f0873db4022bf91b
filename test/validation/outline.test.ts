import assert from 'node:assert/strict'
import { once } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { MessageChannel } from 'node:worker_threads'
import fc from 'fast-check'
import t from 'tap'
import { endpoints } from '../../plugins/protocols/index.js'
import { readOptions } from '../../plugins/validation/options.js'
import { outline } from '../../plugins/validation/outline.js'
import { answerQuestion, rulesFrom, serveQuestions } from '../../plugins/validation/questions.js'

t.test('a small document is kept whole', async () => {
  const texts = fc.json({ maxDepth: 4 }).filter((text) => !text.includes('__proto__') && text.length < 2_000)
  fc.assert(fc.property(texts, (text) => {
    const json = JSON.parse(text)
    return isDeepStrictEqual(outline(json, [['a'], ['a', 'b']]), json)
  }), { numRuns: 200 })
})

t.test('fields that decide are kept wherever they stand', async (t) => {
  const many = Object.fromEntries([...Array(5_000).keys()].map((index) => [`k${index}`, index]))
  const json = { ...many, max_tokens: 5, config: { ...many, max: [1], n: 3 }, list: [...Array(5_000).keys()], text: 'x' }
  const kept = outline(json, [
    ['max_tokens'], ['config', 'max'], ['config', 'n'], ['config', 'absent'], ['absent', 'x'], ['list', 'length'], ['text', 'x'],
  ])
  t.match(kept, { k0: 0, max_tokens: 5, config: { n: 3 }, text: 'x' })
  t.strictSame(Object(kept).config.max, [])
  t.ok(JSON.stringify(kept).length < 100_000)
})

t.test('a field that is kept is whole where there is hardly room for it', async (t) => {
  const texts = Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`text-${i}`, 'x'.repeat(17 * 1024)]))
  for (let units = 850; units < 1_024; units += 1) {
    t.equal(Object(outline({ ...texts, filler: 'x'.repeat(units), model: 'large-model' }, [['model']])).model, 'large-model')
  }
})

t.test('a field that was kept has its other fields beside it where there is room', async (t) => {
  t.strictSame(outline({ a: { c: [1], b: 1, d: 2 } }, [['a', 'b']]), { a: { b: 1, d: 2, c: [1] } })
})

t.test('what is kept is bounded: values, text, names', async (t) => {
  const long = 'x'.repeat(100_000)
  const cases: unknown[] = [
    [...Array(1_000_000).keys()], Array(1_000).fill(long), long, Array(200_000).fill({ a: { b: [] } }),
    Object.fromEntries([...Array(1_000).keys()].map((index) => [index + long, { index }])),
    { messages: Array(1_000).fill({ role: 'user', content: [{ type: 'image_url', image_url: { url: long } }] }) },
  ]
  for (const json of cases) t.ok(JSON.stringify(outline(json, [])).length < 400_000)
  t.strictSame(Object.keys(Object(outline({ a: [...Array(3_000).keys()], b: {} }, []))), ['a'], 'what there is no room for is left out')
  t.match(outline({ b: { c: 1 }, messages: [{ content: long }], a: 1 }, []), {
    a: 1, b: { c: 1 }, messages: [{ content: 'x'.repeat(17 * 1024) }],
  })
})

t.test('the beginning of a list that has no room is kept, with what it stands under', async (t) => {
  const picture = 'x'.repeat(100_000)
  const content = [{ type: 'text', text: 'What is it?' }, ...Array.from({ length: 40 }, () => ({ image_url: { url: picture } }))]
  const kept = outline({ model: 'm', messages: [{ role: 'user', content }] }, [])
  t.match(kept, { model: 'm', messages: [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }] }] })
})

t.test('a name that would change what an object is has no place in it', async (t) => {
  const kept = outline(JSON.parse('{"__proto__":{"stream":true},"a":1}'), [])
  t.strictSame(JSON.stringify(kept), '{"a":1}')
  t.equal(Object(kept).stream, undefined)
  t.strictSame(
    JSON.stringify(outline(JSON.parse('{"a":{"constructor":{"x":1},"__proto__":{"x":[1]}}}'), [])), '{"a":{"constructor":{"x":1}}}'
  )
  t.equal(Object({}).x, undefined, 'nor is any other object changed')
})

const rules = rulesFrom(readOptions({}).data)

function ask (endpoint: string, text: string): unknown {
  const given = new Uint8Array(Buffer.from(text))
  const { bytes, verdict } = answerQuestion({ endpoint, type: { kind: 'json' }, wantsPlaces: false, bytes: given }, rules)
  assert.equal(Buffer.from(bytes).toString(), text)
  return verdict
}

t.test('a question is answered with what the body says, and with the body', async (t) => {
  for (const { id, schema } of endpoints) if (schema !== null) t.match(ask(id, '{'), { keyword: 'json', code: 'invalid_json' }, id)
  t.strictSame(ask('chat_completions', '{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"models":["a","b","a"]}'), {
    json: { model: 'm', messages: [{ role: 'user', content: 'x' }], stream: true, models: ['a', 'b', 'a'] },
    model: 'm',
    otherModels: ['a', 'b'],
    substitutes: ['a', 'b'],
    stream: true,
  })
  const contents = Array.from({ length: 3_000 }, () => ({ parts: [{ text: 'x' }] }))
  const generationConfig = { temperature: 0.5, topP: 0.1, maxOutputTokens: 9 }
  t.match(
    ask('generate_content.generateContent', JSON.stringify({ contents, generationConfig })), { json: { generationConfig } },
    'what spans and estimates read, however much stands before it'
  )
  const tools = [...Array.from({ length: 3_000 }, () => ({ name: 'mine', input_schema: {} })), { type: 'web_search_1', max_uses: 3 }]
  t.match(
    ask('messages', JSON.stringify({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'x' }], tools })),
    { json: { tools: [{ type: 'web_search_1', max_uses: 3 }] } }
  )
  t.match(ask('images', '{"prompt":"x","n":2}'), { json: { prompt: 'x', n: 2 } }, 'of what has no text there are no settings')
  t.match(ask('messages', '{"model":"m"}'), { keyword: 'required', param: 'max_tokens' })
  const models = [...Array(1_001).keys()].map((index) => `m${index}`)
  t.match(ask('chat_completions', JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], models })), {
    keyword: 'models', code: 'invalid_body',
  })
  const named = (length: number): unknown =>
    ask('chat_completions', JSON.stringify({ model: 'm'.repeat(length), messages: [{ role: 'user', content: 'x' }] }))
  t.match(named(4_096), { model: 'm'.repeat(4_096) })
  t.match(named(4_097), { keyword: 'models', code: 'invalid_body', param: 'model' }, 'what is remembered of it is bounded')
  t.throws(() => ask('nothing', '{}'), { message: 'there is no endpoint nothing' })
})

t.test('no other model of a body has a longer name than the one that is asked for may have', async (t) => {
  const chat = { model: 'm', messages: [{ role: 'user', content: 'x' }] }
  const bodies: Readonly<Record<string, (model: string) => object>> = {
    chat_completions: (model) => ({ ...chat, models: [model] }),
    messages: (model) => ({ ...chat, max_tokens: 1, tools: [{ type: 'advisor', name: 'a', model }] }),
    responses: (model) => ({ model: 'm', input: [{ type: 'additional_tools', tools: [{ model }] }] }),
    images: (model) => ({ model: 'm', prompt: 'x', svg: { model } }),
    embeddings: (model) => ({ model: 'm', input: 'x', fallbacks: [{ m: [model] }] }),
    'generate_content.batchEmbedContents': (model) => ({ requests: [{ model, content: { parts: [{ text: 'x' }] } }] }),
  }
  for (const [endpoint, bodyOf] of Object.entries(bodies)) {
    const asked = (length: number): unknown => ask(endpoint, JSON.stringify(bodyOf('n'.repeat(length))))
    t.match(asked(4_096), { otherModels: ['n'.repeat(4_096)] }, endpoint)
    t.match(asked(4_097), { keyword: 'models', code: 'invalid_body', param: null }, `${endpoint}: else the memory of prices keeps it`)
  }
})

t.test('every endpoint can be asked about, and long names are cut', async (t) => {
  const { data } = readOptions({ maxValues: 4 })
  const rules = rulesFrom(data)
  for (const { id } of endpoints) {
    const bytes = new Uint8Array(Buffer.from('--b--'))
    const { verdict } = answerQuestion({ endpoint: id, type: { kind: 'form', boundary: 'b' }, wantsPlaces: true, bytes }, rules)
    t.match(verdict, { model: null, stream: false }, id)
  }
  const json = (text: string): unknown => {
    const bytes = new Uint8Array(Buffer.from(text))
    return answerQuestion({ endpoint: 'chat_completions', type: { kind: 'json' }, wantsPlaces: false, bytes }, rules).verdict
  }
  t.match(json('[{},{},{},{}]'), { keyword: 'values' })
  const name = 'x'.repeat(1_000)
  t.match(json(`{"${name}":1,"${name}":2}`), { keyword: 'duplicate_key', param: /^x{200}\.\.\.$/ })
})

t.test('where the model stands is told to whoever wants to know, unless there are very many places', async (t) => {
  const rules = rulesFrom(readOptions({}).data)
  const placesIn = (endpoint: string, text: string, wantsPlaces = true): unknown => {
    const { verdict } = answerQuestion({ endpoint, type: { kind: 'json' }, wantsPlaces, bytes: new Uint8Array(Buffer.from(text)) }, rules)
    return 'modelPlaces' in verdict ? verdict.modelPlaces : null
  }
  const chat = '{"messages":[{"role":"user","content":"x"}],"mod\\u0065l":"b"}'
  t.same(placesIn('chat_completions', chat), [[chat.length - 4, chat.length - 1]])
  t.same(placesIn('chat_completions', chat, false), null)
  t.same(placesIn('generate_content.generateContent', '{"contents":[{"parts":[{"text":"x"}]}]}'), [], 'nor is it looked for again')
  const one = '{"model":"models/a","content":{"parts":[{"text":"x"}]}}'
  const batch = (count: number): string => `{"requests":[${Array<string>(count).fill(one).join(',')}]}`
  t.same(placesIn('generate_content.batchEmbedContents', batch(2)), [[22, 32], [22 + one.length + 1, 32 + one.length + 1]])
  t.equal(placesIn('generate_content.batchEmbedContents', batch(10_001)), null)
})

t.test('a thread answers what comes through its port', async (t) => {
  const { port1, port2 } = new MessageChannel()
  t.teardown(() => port1.close())
  serveQuestions(port2, readOptions({}).data)
  const bytes = new Uint8Array(Buffer.from('{'))
  port1.postMessage({ endpoint: 'chat_completions', type: { kind: 'json' }, wantsPlaces: false, bytes })
  t.match(await once(port1, 'message'), [{ bytes, verdict: { keyword: 'json' } }])
  await t.resolves(import('../../plugins/validation/check-thread.js'), 'and outside of a thread there is nothing to answer')
})

t.test('how a request asks to be served is kept, wherever it stands', (t) => {
  const fill = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`k${at}`, at]))
  const messages = [{ role: 'user', content: 'x' }]
  const bytes = new TextEncoder().encode(JSON.stringify({ model: 'm', messages, ...fill, service_tier: 'priority' }))
  const rules = rulesFrom({ schemas: '{}', maxDepth: 9, maxValues: 9_999 })
  const { verdict } = answerQuestion({ endpoint: 'chat_completions', type: { kind: 'json' }, wantsPlaces: false, bytes }, rules)
  t.match(verdict, { json: { service_tier: 'priority' } })
  t.end()
})
