import t from 'tap'
import { call, listen, providerSecret, read, secret, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

const cases = [
  {
    url: '/v1/messages',
    body: '{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
    begin: [
      { type: 'message_start', message: { id: 'x', model: 'm', usage: { input_tokens: 9, output_tokens: 1 } } },
      { type: 'ping' },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'some words' } },
    ],
    failure: { type: 'error', error: { type: 'authentication_error', message: `no such key: ${providerSecret}` } },
  },
  {
    url: '/v1/responses',
    body: '{"model":"m","stream":true,"input":"hi"}',
    begin: [
      { type: 'response.created', response: { id: 'r', model: 'm' } },
      { type: 'response.in_progress', response: { id: 'r', model: 'm' } },
      { type: 'response.output_text.delta', delta: 'some words' },
    ],
    failure: { type: 'response.failed', response: { id: 'r', error: { code: 'x', message: `no such key: ${providerSecret}` } } },
  },
] as const

t.test('a failure within a stream is known at once however few blanks it has: the upstream\'s secret in it is not told', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const base = await listen(app)
  for (const { url, body, begin, failure } of cases) {
    for (const field of ['data: ', 'data:']) {
      const events = [...begin, failure].map((event) => `${field}${JSON.stringify(event)}\n\n`)
      upstream.queue({ headers: { 'content-type': 'text/event-stream' }, body: events.join(''), split: 'events' })
      const headers = { 'x-api-key': secret, 'anthropic-version': '2023-06-01' }
      const { bytes } = await read(await call(base + url, { headers, body }).reply)
      t.match(bytes.toString(), /no such key: \*+"/, `${url} ${field}`)
      t.match(await settled.next(), { outcome: 'upstream_error' })
    }
  }
})
