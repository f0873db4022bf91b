/** A reply of success that tells of a failure, with the upstream's secret in it, in every cut and however late. */
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import llmGateway from '../../plugins/index.js'
import { call, gatewayOptions, listen, secret } from '../helpers/gateway.js'
import { startUpstream, type Script, type Upstream } from '../helpers/upstream.js'

const canary = 'sk-Canary/operators+secret'
const hidden = '*'.repeat(canary.length)

const paths = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
  gemini: '/v1beta/models/m:streamGenerateContent?alt=sse',
  array: '/v1beta/models/m:streamGenerateContent',
} as const
type Api = keyof typeof paths

const body = JSON.stringify({
  model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'x' }], input: 'x', contents: [{ parts: [{ text: 'x' }] }], stream: true,
})

type Ask = (api: Api, script: Script) => Promise<string>

async function start (t: Test): Promise<{ readonly upstream: Upstream, readonly base: string }> {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions('', { upstreams: { main: { url: upstream.url, credential: canary } }, log: false }))
  return { upstream, base: await listen(app) }
}

async function asker (t: Test): Promise<Ask> {
  const { upstream, base } = await start(t)
  return async (api, script) => {
    upstream.queue(script)
    const reply = await fetch(base + paths[api], {
      method: 'POST',
      headers: {
        authorization: `Bearer ${secret}`,
        ...api !== 'chat' && api !== 'responses' && { 'x-goog-api-key': secret },
        'anthropic-version': '2023-06-01',
        'content-type': 'application/json',
      },
      body,
    })
    let text = ''
    try {
      for await (const piece of reply.body ?? []) text += Buffer.from(piece).toString('latin1')
    } catch {
      text += ' broken off'
    }
    return text
  }
}

const told = { message: `Consumer 'api_key:${canary}' has been suspended.` }

/** As each provider writes a piece of text, and a failure. */
const events: Readonly<Record<Exclude<Api, 'array'>, { readonly text: string, readonly failures: readonly string[] }>> = {
  chat: {
    text: `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content: 'a word' } }] })}\n\n`,
    failures: [
      `data: ${JSON.stringify({ error: told })}\n\n`,
      `data: ${JSON.stringify({ id: 'c', choices: [], error: told })}\n\ndata: [DONE]\n\n`,
      `event: error\r\ndata: {"error": ${JSON.stringify(told.message)}}\r\n\r\n`,
    ],
  },
  messages: {
    text: `event: content_block_delta\ndata: ${JSON.stringify({ type: 'content_block_delta', index: 0, delta: { text: 'a word' } })}\n\n`,
    failures: [`event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'api_error', ...told } })}\n\n`],
  },
  responses: {
    text: `event: response.output_text.delta\ndata: ${JSON.stringify({ type: 'response.output_text.delta', delta: 'a word' })}\n\n`,
    failures: [
      `event: error\ndata: ${JSON.stringify({ type: 'error', code: 'x', ...told })}\n\n`,
      `event: response.failed\ndata: ${JSON.stringify({ type: 'response.failed', response: { id: 'r', error: told } })}\n\n`,
    ],
  },
  gemini: {
    text: `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: 'a word' }] } }] })}\n\n`,
    failures: [`data: ${JSON.stringify({ error: { code: 403, ...told, status: 'PERMISSION_DENIED' } })}\n\n`],
  },
}

const stream = { headers: { 'content-type': 'text/event-stream' } }
const names = ['chat', 'messages', 'responses', 'gemini'] as const

t.test('in the first event, wherever it is cut, also into three pieces', async (t) => {
  const ask = await asker(t)
  for (const api of names) {
    for (const failure of events[api].failures) {
      const expected = failure.replace(canary, hidden)
      const at = failure.indexOf(canary)
      let wrong = ''
      for (let cut = 1; cut < failure.length; cut++) {
        const other = [[], [at + 9], [at + 3], [cut + 1]][cut % 4] ?? []
        const split = [cut, ...other].toSorted((a, b) => a - b)
        const reply = await ask(api, { ...stream, body: failure, split })
        if (!reply.startsWith(expected)) wrong ||= `cut at ${split.join()}: ${reply}`
      }
      t.equal(wrong, '', `${api}: ${failure}`)
      t.match(await ask(api, { ...stream, body: failure, split: 'bytes' }), expected)
    }
  }
})

t.test('in a late event, alone or behind others, whole or cut', async (t) => {
  const ask = await asker(t)
  for (const api of names) {
    const { text, failures } = events[api]
    const before = text.repeat(6)
    for (const failure of failures) {
      const expected = before + failure.replace(canary, hidden)
      const at = before.length + failure.indexOf(canary)
      for (const split of [
        [before.length], [text.length * 4], [text.length * 3, before.length], [text.length * 3, at + 5], [before.length, at + 5],
        [text.length * 5, before.length, before.length + 9, at + 5, at + 11], [at], [at + canary.length],
      ]) {
        const reply = await ask(api, { ...stream, body: before + failure, split })
        t.ok(reply.startsWith(expected), `${api}, cut at ${split.join()} of ${at}: ${reply.slice(before.length)}`)
      }
    }
  }
})

t.test('in a document and in an array of them, wherever it is cut', async (t) => {
  const ask = await asker(t)
  const document = JSON.stringify({ error: told })
  const array = `[${JSON.stringify({ candidates: [{ content: { parts: [{ text: 'a word' }] } }] })},\n${document}]`
  for (const [api, reply] of [['chat', document], ['array', array]] as const) {
    let wrong = ''
    for (let cut = 1; cut < reply.length; cut++) {
      const text = await ask(api, { body: reply, split: [cut] })
      if (text !== reply.replace(canary, hidden)) wrong ||= `cut at ${cut}: ${text}`
    }
    t.equal(wrong, '', api)
  }
})

t.test('a stream that breaks off in its failure has all of it that came, and one without a failure all of its bytes', async (t) => {
  const ask = await asker(t)
  const [failure = ''] = events.messages.failures
  const cut = failure.indexOf(canary) + 5
  t.equal(await ask('messages', { ...stream, body: failure, split: [20], cutAt: cut }), `${failure.slice(0, cut)} broken off`)
  t.equal(await ask('messages', { ...stream, body: failure.slice(0, cut), split: [20] }), `${failure.slice(0, cut)} broken off`)
  for (const api of names) {
    const { text } = events[api]
    const words = text.replace('a word', canary) + text.replace('a word', 'an "error" has failed')
    const whole = words.replace('{', '{"error":null,').replace('{', '{"error":"",')
    for (let at = 1; at < whole.length; at += at < text.length ? 1 : 7) {
      const reply = await ask(api, { ...stream, body: whole, split: [at] })
      if (!reply.startsWith(whole)) t.fail(`${api}, cut at ${at}: ${reply}`)
    }
  }
})

t.test('a caller has the event of a failure at its end, though its stream goes on', async (t) => {
  const { upstream, base } = await start(t)
  const [failure = ''] = events.chat.failures
  upstream.queue({ ...stream, body: `${failure}data: `, stallAt: failure.length })
  let text = ''
  for await (const piece of await call(base + paths.chat, { body }).reply) {
    text += String(piece)
    if (text.includes('\n\n')) break
  }
  t.equal(text, failure.replace(canary, hidden))
})
