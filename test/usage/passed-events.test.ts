/** Events that are passed by unread may be read at a stream's end, after what came behind them. */
import t from 'tap'
import { call, listen, read, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { hosts } from './hosts.js'
import { cutAt, requestFor, tapOn } from './meter-reply.js'

const headers = { 'content-type': 'text/event-stream' }

function eventOf (data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

function chunk (content: string, reason: string | null = null): string {
  return eventOf({ id: 'c', model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: reason }] })
}

t.test('a chat without [DONE] is whole wherever its pieces end', async (t) => {
  const begin = ['', 'some words, ', 'tokens" and', ' more of them'].map((content) => chunk(content)).join('')
  for (const behind of [eventOf({ id: 'c', model: 'm', choices: [] }), 'data: {}\n\n', '']) {
    const bytes = Buffer.from(begin + chunk('', 'stop') + behind)
    const wrong = [...bytes.keys()].filter((at) => {
      const { tap } = tapOn(requestFor('chat_completions'), headers)
      for (const piece of cutAt(bytes, [at])) tap.push(piece)
      tap.end()
      return tap.whole !== true
    })
    t.strictSame(wrong, [], behind)
  }
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const text = begin + chunk('', 'stop') + eventOf({ id: 'c', model: 'm', choices: [] })
  upstream.queue({ headers, body: text, split: [begin.length + 20] })
  const body = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
  const { bytes } = await read(await call(`${await listen(app)}/v1/chat/completions`, { body }).reply)
  t.equal(bytes.toString(), text, 'its caller is not told of a failure')
  t.match(await settled.next(), { outcome: 'ok', abortedBy: null })
})

t.test('what ends a response that broke off has a number of its own', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const begin = eventOf({ type: 'response.created', sequence_number: 0, response: { id: 'r', model: 'm' } })
  const deltas = [1, 2, 3, 4].map((at) => eventOf({ type: 'response.output_text.delta', sequence_number: at, delta: 'words' })).join('')
  upstream.queue({ headers, body: begin + deltas, split: [begin.length + deltas.length - 20] })
  const { bytes } = await read(await call(`${await listen(app)}/v1/responses`, { body: '{"model":"m","stream":true,"input":"hi"}' }).reply)
  t.match(bytes.toString().split('\n\n').at(-2), /^event: response\.failed\ndata: \{"type":"response\.failed","sequence_number":5,/)
})

/** A chunk with one of several answers. */
function choiceAt (index: number, more: object): string {
  return eventOf({ id: 'c', model: 'm', choices: [{ index, delta: { content: 'words' }, finish_reason: null, ...more }] })
}

/** Two answers, of which the first fails while the other goes on. */
const failing = [
  choiceAt(0, {}), choiceAt(1, {}), choiceAt(1, {}), choiceAt(0, { error: { message: 'no' } }),
  ...Array.from({ length: 12 }, () => choiceAt(1, {})), choiceAt(1, { finish_reason: 'stop' }), 'data: [DONE]\n\n',
].join('')

t.test('the failure of one of several answers is seen wherever the pieces of a stream end', async (t) => {
  const bytes = Buffer.from(failing)
  const unseen = [...bytes.keys()].filter((at) => {
    const { tap } = tapOn(requestFor('chat_completions'), headers, false, true)
    for (const piece of cutAt(bytes, [at])) tap.push(piece)
    tap.end()
    return !tap.failed
  })
  t.strictSame(unseen, [])
  const body = '{"model":"m","n":2,"stream":true,"messages":[{"role":"user","content":"hi"}]}'
  const upstream = await startUpstream(t)
  for (const { name, start } of hosts) {
    const { app, settled } = await start(t, upstream.url)
    upstream.queue({ headers, body: failing, split: [failing.length - 14] })
    await read(await call(`${await listen(app)}/v1/chat/completions`, { body }).reply)
    t.match(await settled.next(), { outcome: 'upstream_error' }, name)
  }

  const cut = bytes.subarray(0, failing.lastIndexOf('data: {'))
  const whole = [...cut.keys()].filter((at) => {
    const { tap } = tapOn(requestFor('chat_completions'), headers, false, true)
    for (const piece of cutAt(cut, [at])) tap.push(piece)
    tap.end()
    return tap.whole
  })
  t.strictSame(whole, [], 'and the other is cut if it does not end')
  upstream.queue({ headers, body: cut, split: [cut.length - 14] })
  const { app, settled } = await startGateway(t, upstream.url)
  const told = await read(await call(`${await listen(app)}/v1/chat/completions`, { body }).reply)
  t.match(told.bytes.toString().slice(cut.length), /^data: \{"error":.*"upstream_aborted"/)
  t.match(await settled.next(), { outcome: 'truncated', abortedBy: 'upstream' })
})

t.test('what one of several answers tells is not hidden by the null of another', async (t) => {
  const usage = { prompt_tokens: 3, completion_tokens: 4 }
  for (const rest of [{ usage: null, error: null }, { usage: {}, error: {} }, {}]) {
    const document = Buffer.from(JSON.stringify({ choices: [{ index: 0, usage, error: { code: 1 } }, { index: 1, ...rest }] }))
    for (const pieces of [[document], cutAt(document, [1]), cutAt(document, [document.length - 20])]) {
      const llm = requestFor('chat_completions')
      const { tap } = tapOn(llm)
      for (const piece of pieces) tap.push(piece)
      tap.end()
      t.match(llm.usage, { replyFailed: true, tokens: { input: 3, output: 4 } })
    }
  }
})
