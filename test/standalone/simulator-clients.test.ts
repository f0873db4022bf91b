/** What the official clients read from the simulated replies, whole and streamed. */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { startSimulator } from '../../plugins/standalone/simulator.js'

const { url, credential, close } = await startSimulator({ eventDelayMs: 0 })
t.teardown(close)
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: credential })
const messages = [{ role: 'user' as const, content: 'Say hi.' }]

t.test('openai: responses and images', async (t) => {
  const asked = { model: 'some-model', input: 'Say hi.' }
  t.match(await openai.responses.create(asked), { service_tier: 'default', output_text: /^Hello!/, usage: { total_tokens: Number } })
  const streamed = await openai.responses.stream(asked).finalResponse()
  t.match(streamed, { service_tier: 'default', output_text: /^Hello!/ })
  const image = await openai.images.generate({ model: 'some-model', prompt: 'A lighthouse', size: '1536x1024', n: 2 })
  t.match(image, {
    size: '1536x1024', output_format: 'png', data: [{ size: '1536x1024', model: 'some-model', generation_id: /^gen_/ }, {}],
  })
  const types: string[] = []
  for await (const event of await openai.images.generate({ prompt: 'A lighthouse', stream: true })) {
    types.push(`${event.type} ${event.size}`)
  }
  t.same(types, ['image_generation.partial_image 1024x1024', 'image_generation.completed 1024x1024'])
})

async function typesOf (stream: PromiseLike<AsyncIterable<{ readonly type: string }>>): Promise<string[]> {
  const types: string[] = []
  for await (const { type } of await stream) types.push(type)
  return types
}

t.test('openai: an edit of an image, which is sent as a form, is streamed where that asks for it', async (t) => {
  const asked = { model: 'some-model', prompt: 'Add a boat', image: await toFile(Buffer.from('x'), 'a.png', { type: 'image/png' }) }
  t.match(await openai.images.edit(asked), { data: [{ size: '1024x1024' }] })
  t.match(await openai.images.edit({ ...asked, prompt: 'stream', stream: false }), { data: [{ size: '1024x1024' }] })
  t.same(await typesOf(openai.images.edit({ ...asked, stream: true })), ['image_edit.partial_image', 'image_edit.completed'])
})

t.test('openai: a response is streamed again, from the place that is named', async (t) => {
  t.match(await openai.responses.retrieve('resp_1'), { id: 'resp_1', output_text: /^Hello!/ })
  const types = await typesOf(openai.responses.retrieve('resp_1', { stream: true }))
  t.match([types[0], types.at(-1)], ['response.created', 'response.completed'])
  const last = types.length - 1
  for (const [after, left] of [[0, last], [last - 1, 1], [last, 0]] as const) {
    const rest = await typesOf(openai.responses.retrieve('resp_1', { stream: true, starting_after: after }))
    t.same(rest, types.slice(types.length - left), String(after))
  }
})

t.test('anthropic: messages, plain and of the beta, thinking or not', async (t) => {
  const client = new Anthropic({ baseURL: url, apiKey: null, authToken: null, defaultHeaders: { 'x-api-key': credential } })
  const asked = { model: 'some-model', max_tokens: 2048, messages }
  t.match(await client.messages.create(asked), {
    stop_details: null,
    content: [{ type: 'text', citations: [] }],
    usage: { output_tokens_details: { thinking_tokens: 0 }, inference_geo: 'global' },
  })
  t.match(await client.beta.messages.create(asked), { context_management: { applied_edits: { length: 0 } } })
  const thinking = { type: 'adaptive' as const }
  const final = await client.messages.stream({ ...asked, thinking }).finalMessage()
  t.match(final, {
    content: [{ type: 'thinking', signature: String }, { type: 'text', text: /^Hello!/ }],
    stop_details: null,
    usage: { output_tokens_details: { thinking_tokens: 16 } },
  })
  const beta = await client.beta.messages.stream(asked).finalMessage()
  t.match(beta, { context_management: { applied_edits: { length: 0 } }, content: [{ type: 'text', text: /^Hello!/ }] })
})

t.test('google: signed thoughts, whole and streamed', async (t) => {
  const client = new GoogleGenAI({ apiKey: credential, httpOptions: { baseUrl: url } })
  const whole = await client.models.generateContent({ model: 'some-model', contents: 'Say hi.' })
  t.match(whole.candidates?.[0]?.content?.parts, [{ text: /^Hello!/, thoughtSignature: 'c2ltdWxhdGVk' }])
  const signed: unknown[] = []
  for await (const chunk of await client.models.generateContentStream({ model: 'some-model', contents: 'Say hi.' })) {
    signed.push(chunk.candidates?.[0]?.content?.parts?.[0]?.thoughtSignature)
  }
  t.equal(signed.at(-1), 'c2ltdWxhdGVk')
})
