/** Events that are passed by unread may be read at a stream's end, after what came behind them. */
import t from 'tap'
import { call, listen, read, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
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
