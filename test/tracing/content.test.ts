import { randomBytes } from 'node:crypto'
import httpProxy from '@fastify/http-proxy'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import llmGateway from '../../plugins/index.js'
import { choiceTexts } from '../../plugins/protocols/openai-rules.js'
import { endpoints, protocolNames, type ProtocolName } from '../../plugins/protocols/index.js'
import type { TextRules } from '../../plugins/protocols/text-rules.js'
import { captureContent, capturesContent } from '../../plugins/tracing/content.js'
import { inputMessages } from '../../plugins/tracing/input-messages.js'
import { ReplyText } from '../../plugins/tracing/reply-text.js'
import { TextBudget } from '../../plugins/tracing/text-budget.js'
import {
  call, everyProtocol, gatewayOptions, listen, providerSecret, read, secret, watchSettled, type Gateway,
} from '../helpers/gateway.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { settledRequest } from '../metrics/requests.js'
import { send } from '../metrics/traffic.js'
import { startTracing } from './sdk.js'

const name = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'
const budgetUnits = 16 * 1024

interface Running extends Gateway {
  readonly url: string
  readonly upstream: Upstream
  readonly lastSpan: () => ReadableSpan | undefined
}

/** A gateway that was registered while the switch had this value. */
async function start (t: Test, value: string | undefined, bare = false): Promise<Running> {
  const { finished } = startTracing(t, { sdk: true, http: false, undici: false })
  const upstream = await startUpstream(t)
  const before = process.env[name]
  if (value === undefined) delete process.env[name]
  else process.env[name] = value
  const app = Fastify()
  t.teardown(() => app.close())
  const groups = { all: { protocols: everyProtocol } }
  await app.register(llmGateway, gatewayOptions(upstream.url, bare ? { upstreams: {}, routes: false, groups } : { groups }))
  if (bare) await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  if (before === undefined) delete process.env[name]
  else process.env[name] = before
  return { app, settled: watchSettled(app), upstream, url: await listen(app), lastSpan: () => finished().at(-1) }
}

async function chat (
  { url, settled, lastSpan }: Running, content: string, { stream = false, role = 'user' } = {}
): Promise<ReadableSpan['attributes']> {
  await read(
    await call(`${url}/v1/chat/completions`, { body: JSON.stringify({ model: 'gpt-5', stream, messages: [{ role, content }] }) }).reply
  )
  await settled.next()
  return lastSpan()?.attributes ?? {}
}

function outputOf (attributes: ReadableSpan['attributes']): string {
  return JSON.parse(String(attributes['gen_ai.output.messages']))[0].parts[0].content
}

t.test('only what asks for content in spans switches it on', async (t) => {
  for (const value of ['SPAN_ONLY', 'span_and_event', ' true ']) t.ok(capturesContent({ [name]: value }), value)
  for (const value of [undefined, '', 'false', 'NO_CONTENT', 'EVENT_ONLY', 'yes']) {
    t.notOk(capturesContent({ [name]: value }), String(value))
  }
})

const spoken: readonly ProtocolName[] = ['chat_completions', 'responses', 'messages', 'generate_content']

for (const value of [undefined, 'NO_CONTENT', 'EVENT_ONLY']) {
  t.test(`nothing is captured with ${value ?? 'no switch'}`, async (t) => {
    const running = await start(t, value)
    for (const protocol of protocolNames) {
      for (const stream of protocol === 'embeddings' ? [false] : [false, true]) {
        await read(await send(running.url, protocol, stream).reply)
        await running.settled.next()
        const told = JSON.stringify(running.lastSpan()?.attributes)
        t.notMatch(told, /Hello|lighthouse|gen_ai\.\w+\.messages/, `${protocol} ${stream ? 'streamed' : 'whole'}`)
      }
    }
  })
}

t.test('every protocol, whole and streamed, where the switch asks for it', async (t) => {
  const running = await start(t, 'SPAN_ONLY')
  for (const protocol of protocolNames) {
    for (const stream of protocol === 'embeddings' ? [false] : [false, true]) {
      const what = `${protocol} ${stream ? 'streamed' : 'whole'}`
      await read(await send(running.url, protocol, stream).reply)
      await running.settled.next()
      const attributes = running.lastSpan()?.attributes ?? {}
      const [input] = JSON.parse(String(attributes['gen_ai.input.messages']))
      t.match(input, { role: 'user', parts: [{ type: 'text', content: /\w/ }] }, what)
      t.equal('gen_ai.output.messages' in attributes, spoken.includes(protocol), `${what}: pictures and numbers are no text`)
      if (spoken.includes(protocol)) {
        t.strictSame(JSON.parse(String(attributes['gen_ai.output.messages'])), [{
          role: 'assistant',
          parts: [{ type: 'text', content: 'Hello from upstream 👋' }],
          finish_reason: [attributes['gen_ai.response.finish_reasons']].flat()[0],
        }], what)
      }
      t.notOk('llm_gateway.input_truncated' in attributes || 'llm_gateway.output_truncated' in attributes, what)
    }
  }
})

t.test('a stream without events is a list of documents', async (t) => {
  const running = await start(t, 'true')
  const { reply } = call(`${running.url}/v1beta/models/m:streamGenerateContent`, {
    headers: { authorization: '', 'x-goog-api-key': secret }, body: '{"contents":[{"parts":[{"text":"hi"}]}]}',
  })
  await read(await reply)
  await running.settled.next()
  t.equal(outputOf(running.lastSpan()?.attributes ?? {}), 'Hello from upstream 👋')
})

t.test('an event stream is one in whatever letters its type is written', async (t) => {
  const running = await start(t, 'SPAN_ONLY')
  running.upstream.queue({ headers: { 'content-type': 'Text/Event-Stream;charset=utf-8' } })
  t.equal(outputOf(await chat(running, 'hi', { stream: true })), 'Hello from upstream 👋')
})

t.test('on a mount that nobody adapted', async (t) => {
  const running = await start(t, 'SPAN_ONLY', true)
  for (const stream of [false, true]) {
    const attributes = await chat(running, 'a private question', { stream })
    t.match(attributes['gen_ai.input.messages'], 'a private question')
    t.equal(outputOf(attributes), 'Hello from upstream 👋')
  }
})

t.test('long texts are cut, and told to be', async (t) => {
  const running = await start(t, 'SPAN_ONLY')
  for (const length of [budgetUnits * 2, 10 * budgetUnits, 3 * 1024 * 1024]) {
    running.upstream.queue({ body: { choices: [{ message: { content: 'y'.repeat(length) } }] } })
    const attributes = await chat(running, 'x'.repeat(length))
    t.match(attributes, { 'llm_gateway.input_truncated': true, 'llm_gateway.output_truncated': true })
    t.ok(String(attributes['gen_ai.input.messages']).length < budgetUnits + 100)
    t.ok(String(attributes['gen_ai.output.messages'] ?? '').length < budgetUnits + 100)
  }
})

t.test('thousands of short texts are cut, too: what stands around each is longer than it', async (t) => {
  const { url, settled, lastSpan } = await start(t, 'SPAN_ONLY')
  const asked = async (count: number): Promise<ReadableSpan['attributes']> => {
    await read(await call(`${url}/v1/embeddings`, { body: JSON.stringify({ model: 'm', input: Array(count).fill('a') }) }).reply)
    await settled.next()
    return lastSpan()?.attributes ?? {}
  }
  const whole = await asked(1_000)
  t.equal(JSON.parse(String(whole['gen_ai.input.messages'])).length, 1_000)
  t.notOk('llm_gateway.input_truncated' in whole)
  const cut = await asked(8_000)
  t.equal(cut['gen_ai.input.messages'], whole['gen_ai.input.messages'])
  t.equal(cut['llm_gateway.input_truncated'], true)
})

t.test('a role is text of the caller, too: it counts, and has no key', async (t) => {
  const running = await start(t, 'SPAN_ONLY')
  const long = await chat(running, 'hi', { role: 'r'.repeat(2 * budgetUnits) })
  t.equal(long['llm_gateway.input_truncated'], true)
  t.notOk('gen_ai.input.messages' in long)
  t.match((await chat(running, 'hi', { role: secret }))['gen_ai.input.messages'], '"role":"[key]"')
})

t.test('what was said before a stream broke off', async (t) => {
  const running = await start(t, 'SPAN_ONLY')
  running.upstream.queue({ split: 'events', cutAt: 500 })
  const attributes = await chat(running, 'hi', { stream: true })
  t.match(outputOf(attributes), /^Hello/)
  t.notMatch(attributes['gen_ai.output.messages'], 'finish_reason')
})

t.test('who moves the bytes drives the usage tap as before', async (t) => {
  const { provider, finished } = startTracing(t, { sdk: true, http: false, undici: false })
  const calls: string[] = []
  const llm = settledRequest()
  const streamFacts = { id: 'a', model: 'm', createdAt: 1, sequence: 2 }
  llm.openTap = () => ({
    push: (chunk) => chunk.subarray(1),
    end: () => Buffer.from('rest'),
    abort: (side) => calls.push(side),
    complete: true,
    lastEventSeen: true,
    failed: true,
    whole: false,
    streamFacts,
  })
  const span = provider.getTracer('x').startSpan('x')
  captureContent(span, llm, [])
  const tap = llm.openTap(200, {})
  t.equal(tap?.complete, true)
  t.equal(tap?.push(Buffer.from('{"choices":[{"message":{"content":"Hel'))?.toString().slice(0, 3), '"ch')
  t.equal(tap?.end()?.toString(), 'rest')
  t.strictSame([tap?.lastEventSeen, tap?.failed, tap?.whole, tap?.streamFacts], [true, true, false, streamFacts])
  tap?.abort('client')
  t.strictSame(calls, ['client'])
  span.end()
  t.notOk('gen_ai.output.messages' in (finished()[0]?.attributes ?? {}), 'half a document says nothing')
})

t.test('a compressed reply is left alone', async (t) => {
  const running = await start(t, 'SPAN_ONLY')
  running.upstream.queue({ encoding: 'gzip' })
  const attributes = await chat(running, 'hi')
  t.notOk('gen_ai.output.messages' in attributes)
  t.match(attributes['gen_ai.usage.output_tokens'], Number)
  running.upstream.queue({ encoding: 'gzip', body: { choices: [{ message: { content: randomBytes(400 * 1024).toString('base64') } }] } })
  t.notOk('llm_gateway.output_truncated' in await chat(running, 'hi'), 'however long it is')
})

t.test('an error of the provider is not what the model said', async (t) => {
  const running = await start(t, 'SPAN_ONLY')
  running.upstream.queue({ status: 400, body: { error: { message: 'no' }, choices: [{ message: { content: 'Hello' } }] } })
  t.notOk('gen_ai.output.messages' in await chat(running, 'hi'))
})

t.test('a key that was pasted or repeated is not captured, nor the beginning of one at the cut', async (t) => {
  const running = await start(t, 'SPAN_ONLY')
  const pieces = [secret.slice(0, 7), secret.slice(7), ' and ', providerSecret]
  const events = pieces.map((content) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`)
  running.upstream.queue({ body: events.join(''), headers: { 'content-type': 'text/event-stream' }, split: 'events' })
  const attributes = await chat(running, `my key is ${secret}`, { stream: true })
  t.equal(outputOf(attributes), '[key] and [key]')
  t.match(attributes['gen_ai.input.messages'], 'my key is [key]')
  for (const length of [6, 8, secret.length - 1]) {
    const before = 'z'.repeat(budgetUnits - length)
    running.upstream.queue({ body: { choices: [{ message: { content: before + secret } }] } })
    t.equal(outputOf(await chat(running, 'x')), before, `${length} letters of it`)
  }
})

const textOf = (name: string): TextRules | null => endpoints.find(({ protocol }) => protocol === name)?.text ?? null

t.test('input in the shapes of the protocols', async (t) => {
  const all = (text: string): string => text
  t.strictSame(inputMessages(textOf('chat_completions'), {
    messages: [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: [{ type: 'text', text: 'what is this' }, { type: 'image_url', image_url: { url: 'data:...' } }] },
      { role: 'assistant', content: null },
    ],
  }, all), [
    { role: 'system', parts: [{ type: 'text', content: 'be brief' }] },
    { role: 'user', parts: [{ type: 'text', content: 'what is this' }, { type: 'image_url' }] },
  ])
  t.strictSame(inputMessages(textOf('generate_content'), { contents: { parts: { text: 'one' } } }, all), [{
    role: 'user', parts: [{ type: 'text', content: 'one' }],
  }])
  t.strictSame(
    inputMessages(textOf('responses'), { input: ['a', 'b'] }, all),
    ['a', 'b'].map((content) => ({ role: 'user', parts: [{ type: 'text', content }] }))
  )
  t.strictSame(inputMessages(textOf('generate_content'), { content: { parts: [{ text: 'x' }] } }, all), [{
    role: 'user', parts: [{ type: 'text', content: 'x' }],
  }])
  for (const json of [undefined, null, 5, 'text', {}, { input: [[1, 2]] }, { messages: [{ content: {} }, null] }]) {
    for (const name of [...protocolNames, 'models']) t.strictSame(inputMessages(textOf(name), json, all), [], name)
  }
  t.strictSame(inputMessages(textOf('responses'), { input: ['a', { type: 'x' }] }, () => ''), [])
})

t.test('a budget takes what just fits, and the beginning of what does not', async (t) => {
  const budget = new TextBudget(6)
  t.equal(budget.take('a👋'), 'a👋')
  t.equal(budget.take('bcd'), 'bcd')
  t.notOk(budget.truncated)
  t.equal(new TextBudget(6).take('a👋bcde'), 'a👋bcd')
})

t.test('a budget cuts no character in two', async (t) => {
  const budget = new TextBudget(4)
  t.equal(budget.take('abc'), 'abc')
  t.equal(budget.take('👋'), '')
  t.ok(budget.truncated)
  t.equal(budget.take('d'), '')
})

t.test('reply text is read in whatever pieces it comes', async (t) => {
  const events = 'event: x\r\ndata: {"choices":[{"delta":{"content":"wel👋"}}]}\r\n\r\ndata: ' +
    'broken\n\nnote:{"choices":[{"delta":{"content":"un"}}]}\ndata:{"choices":[{"delta":{"content":"come"}}]}\n\ndata: [DONE]\n\n' +
    'data: {"choices":[{"delta":{"content":"cut"}}]}'
  for (const bytes of [Buffer.from(events), Buffer.from(events.replace(/\r?\n/g, '\r'))]) {
    for (const size of [1, 2, 7, bytes.length]) {
      const reply = new ReplyText(choiceTexts, new TextBudget(100), true)
      for (let at = 0; at < bytes.length; at += size) reply.push(bytes.subarray(at, at + size))
      reply.end()
      t.equal(reply.text, 'wel👋come', `pieces of ${size}`)
    }
  }
  const document = new ReplyText(choiceTexts, new TextBudget(100), false)
  document.push(Buffer.from('{"choices":[{"message":{"content":"once"}}]}'))
  document.end()
  document.end()
  t.equal(document.text, 'once', 'also where its caller leaves after its end')
})

t.test('arguments of tools and what a model thinks are no text of its reply', async (t) => {
  const said = (name: string, events: readonly object[]): string => {
    const reply = new ReplyText(textOf(name)?.output ?? [], new TextBudget(100), true)
    for (const event of events) reply.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
    return reply.text
  }
  t.equal(said('responses', [
    { type: 'response.reasoning_summary_text.delta', delta: 'thought' },
    { type: 'response.output_text.delta', delta: 'said' },
    { type: 'response.function_call_arguments.delta', delta: '{"city":"Rome"}' },
  ]), 'said')
  t.equal(said('messages', [
    { type: 'content_block_delta', delta: { type: 'thinking_delta', thinking: 'thought' } },
    { type: 'content_block_delta', delta: { type: 'text_delta', text: 'said' } },
    { type: 'content_block_delta', delta: { type: 'input_json_delta', partial_json: '{"city"' } },
  ]), 'said')
})

t.test('what is too long to be read is not kept, and nothing is read behind it', async (t) => {
  const event = (content: string): Buffer => Buffer.from(`data: {"choices":[{"delta":{"content":"${content}"}}]}\n\n`)
  const stream = new ReplyText(choiceTexts, new TextBudget(100), true)
  stream.push(event('one'))
  stream.push(Buffer.alloc(300 * 1024, 'x'))
  for (const more of [Buffer.from('\n\n'), event('three')]) stream.push(more)
  stream.end()
  t.equal(stream.text, 'one')
  const budget = new TextBudget(400)
  const document = new ReplyText(choiceTexts, budget, false)
  document.push(Buffer.from(JSON.stringify({ choices: [{ message: { content: 'text' } }], more: 'x'.repeat(300 * 1024) })))
  document.end()
  t.strictSame([document.text, budget.truncated], ['', true])
  const little = new TextBudget(100)
  const endless = new ReplyText(choiceTexts, little, true)
  for (let n = 0; n < 10; n += 1) endless.push(Buffer.alloc(64 * 1024, 'x'))
  endless.end()
  t.ok(little.truncated, 'a line without end')
})
