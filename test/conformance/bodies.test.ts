/** Checks 31-39 of the checklist: what real bodies look like, and that they reach the upstream as they are. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import type { GroupOptions } from '../../plugins/index.js'
import { sha256 } from '../helpers/upstream.js'
import { calls, main, plain, send, type Call, type Change } from './calls.js'
import { keys, startGateway, type Setup } from './gateway.js'

let gateway: Setup
t.before(async () => { gateway = await startGateway(t) })

async function passes (t: Test, call: Call, body: string | Buffer, change: Change = {}): Promise<void> {
  const reply = await send(gateway.origin, call, { ...change, body })
  t.equal(reply.status, 200, reply.text.slice(0, 200))
  t.equal(gateway.upstream.seen.at(-1)?.sha256, sha256(body), 'the same bytes')
}

const chat = plain('chat_completions')
const responses = plain('responses')
const gemini = plain('generate_content.generateContent')
const user = { role: 'user', content: 'Say hi.' }
const toolCall = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }

t.test('check 31: a messages body of 110 kB, and of 5 MB', async (t) => {
  for (const size of [110_000, 5_000_000]) {
    const system = [{ type: 'text', text: 'x'.repeat(size), cache_control: { type: 'ephemeral' } }]
    await passes(t, plain('messages'), JSON.stringify({
      model: 'm', max_tokens: 1, stream: false, system, messages: [user], tools: [], thinking: { type: 'adaptive' },
    }))
  }
})

t.test('check 32: unknown fields and odd spellings travel byte for byte, on every endpoint with a JSON body', async (t) => {
  for (const call of calls.filter(({ body }) => body !== '')) {
    const odd = call.body.replace(/^\{/, '{ "zz_new": {"a":1e2, "b":[ null,1.0,-0 ]}, "\\u007az": "\\u00e9 \\/ é \\ud83d\\udc4b 👋",\t')
      .replace(/\}$/, ' }\r\n')
    await passes(t, call, odd)
  }
})

t.test('check 33: a missing field is 400 that names it, and nothing is forwarded', async (t) => {
  const before = gateway.upstream.seen.length
  const rows: ReadonlyArray<readonly [id: string, body: object, param: string]> = [
    ['chat_completions', { model: 'm' }, 'messages'],
    ['chat_completions', { messages: [user] }, 'model'],
    ['chat_completions', { model: 'm', messages: [{ content: 'x' }] }, 'messages[0].role'],
    ['responses', { input: 'x' }, 'model'],
    ['images', { model: 'm' }, 'prompt'],
    ['embeddings', { model: 'm' }, 'input'],
    ['messages', { model: 'm', messages: [user] }, 'max_tokens'],
    ['messages.count_tokens', { model: 'm' }, 'messages'],
    ['generate_content.generateContent', {}, 'contents'],
    ['generate_content.batchEmbedContents', {}, 'requests'],
  ]
  for (const [id, body, param] of rows) {
    const reply = await send(gateway.origin, plain(id), { body: JSON.stringify(body) })
    t.equal(reply.status, 400, id)
    t.ok(reply.text.includes(param), `${id}: ${reply.text}`)
  }
  t.match((await send(gateway.origin, chat, { body: '{"model":"m"}' })).json, { error: { param: 'messages' } })
  t.equal(gateway.upstream.seen.length, before)
})

t.test('check 34: an assistant message without content, or with null', async (t) => {
  for (const content of [{}, { content: null }, { content: '' }, { content: [{ type: 'text', text: 'x' }] }]) {
    await passes(t, chat, JSON.stringify({
      model: 'm',
      messages: [user, { role: 'assistant', ...content, tool_calls: [toolCall] }, { role: 'tool', tool_call_id: 'call_1', content: '1' }],
    }))
  }
})

t.test('check 35: responses with an array input, a prompt, a previous response', async (t) => {
  const inputs = [
    { input: [{ role: 'user', content: [{ type: 'input_text', text: 'x' }] }] },
    { input: [{ type: 'function_call_output', call_id: 'c', output: '1' }] },
    { prompt: { id: 'pmpt_1', variables: {} } },
    { previous_response_id: 'resp_1' },
    { conversation: 'conv_1', client_metadata: { a: 'b' } },
  ]
  for (const input of inputs) await passes(t, responses, JSON.stringify({ model: 'm', ...input }))
})

t.test('check 36: generateContent in snake_case and in camelCase', async (t) => {
  const contents = [{ parts: [{ inline_data: { mime_type: 'image/png', data: 'AA==' } }] }]
  await passes(
    t, gemini, JSON.stringify({ contents, system_instruction: { parts: [{ text: 'x' }] }, generation_config: { max_output_tokens: 5 } })
  )
  await passes(t, gemini, JSON.stringify({
    contents,
    systemInstruction: { role: 'user', parts: [{ text: 'x' }] },
    safetySettings: [],
    toolConfig: {},
    cachedContent: 'cachedContents/1',
  }))
})

t.test('check 37: embeddings of text, texts, tokens, token lists', async (t) => {
  for (const input of ['x', ['x', 'y'], [1, 2], [[1], [2, 3]]]) {
    await passes(t, plain('embeddings'), JSON.stringify({ model: 'm', input, encoding_format: 'base64' }))
  }
})

const boundary = '----kit-boundary'
const file = Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10, 0, 255]), Buffer.alloc(100_000, 0xfe), Buffer.from('\r\n--')])
const field = (
  name: string, value: string
): Buffer => Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
const form = (...fields: Buffer[]): Buffer => Buffer.concat([
  ...fields,
  Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="image[]"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n`),
  file,
  Buffer.from(`\r\n--${boundary}--\r\n`),
])
const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }

t.test('check 38: an image edit and a variation as a form pass unmodified', async (t) => {
  for (const id of ['images.edits', 'images.variations']) {
    await passes(t, plain(id), form(field('model', 'm'), field('prompt', 'a dot')), { headers })
    t.equal(gateway.upstream.seen.at(-1)?.headers['content-type'], headers['content-type'])
  }
})

t.test('check 38: a group with a model list reads the model from the form', async (t) => {
  const groups: Record<string, GroupOptions> = { images: { protocols: ['images'], upstream: 'main', models: ['allowed'] } }
  const { origin, upstream } = await startGateway(t, { groups, keys: [{ id: 'k', group: 'images', secret: keys.openai }] })
  const edits = plain('images.edits')
  t.equal((await send(origin, edits, { headers, body: form(field('model', 'allowed'), field('prompt', 'x')) })).status, 200)
  t.equal((await send(origin, edits, { headers, body: form(field('model', 'other'), field('prompt', 'x')) })).status, 403)
  t.equal((await send(origin, edits, { headers, body: form(field('prompt', 'x')) })).status, 400)
  t.equal(upstream.seen.length, 1)
})

t.test('check 39: 404, 405, 413, 415 and malformed bodies have the envelope of the family, and a body', async (t) => {
  const { origin } = await startGateway(t, { validation: { maxBodyBytes: 1_000 } })
  const rows: ReadonlyArray<readonly [status: number, change: Change]> = [
    [404, { path: '/v1/nothing' }],
    [405, { method: 'PUT' }],
    [413, { body: `{"model":"m","x":"${'x'.repeat(1_000)}"}` }],
    [415, { headers: { 'content-type': 'text/plain' } }],
    [415, { headers: { 'content-encoding': 'gzip' } }],
    [400, { body: '{"model":' }],
    [400, { body: '\ufeff{}' }],
    [400, { body: '{"model":"a","model":"b"}' }],
    [400, { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]) }],
  ]
  const shapes = {
    openai: { error: { message: String, type: String } },
    anthropic: { type: 'error', error: { type: String, message: String }, request_id: String },
    gemini: { error: { code: Number, message: String, status: String } },
  }
  for (const call of main) {
    for (const [status, change] of rows) {
      const reply = await send(origin, call, change)
      t.equal(reply.status, status, `${call.id} ${JSON.stringify(change).slice(0, 80)}`)
      t.match(reply.json, shapes[call.family])
      t.match(reply.headers['content-type'], /^application\/json/)
      t.ok(reply.headers['x-request-id'])
    }
  }
})

t.test('Expect: 100-continue is answered before the body is sent', async (t) => {
  const { hostname, port } = new URL(gateway.origin)
  const socket = connect(Number(port), hostname)
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys.openai}\r\ncontent-type: ` +
    'application/json\r\n' +
    `expect: 100-continue\r\nconnection: close\r\ncontent-length: ${chat.body.length}\r\n\r\n`)
  const [first] = await once(socket, 'data')
  t.match(String(first), /^HTTP\/1\.1 100 Continue/)
  socket.write(chat.body)
  const rest = Buffer.concat(await socket.toArray()).toString()
  t.match(rest, /HTTP\/1\.1 200 OK/)
  t.equal(gateway.upstream.seen.at(-1)?.headers.expect, undefined)
})
