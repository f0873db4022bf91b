import t from 'tap'
import { call, listen, read, startGateway } from '../helpers/gateway.js'
import { replyFixture, startUpstream } from '../helpers/upstream.js'
import { hosts } from './hosts.js'

t.test('a response that is streamed again from its end has nothing left, and is whole', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const url = await listen(app)
  const headers = { 'content-type': 'text/event-stream' }
  for (const body of ['', ': keep-alive\n\n']) {
    upstream.queue({ headers, body })
    const again = await call(`${url}/v1/responses/resp_1?stream=true&starting_after=12`, { method: 'GET' }).reply
    t.strictSame([again.statusCode, (await read(again)).bytes.toString()], [200, body])
    t.match(await settled.next(), { outcome: 'ok', errorCode: null, abortedBy: null, usage: { tokens: null, missing: null } })
  }
  upstream.queue({ headers, body: 'event: response.comp' }, { headers, body: '' })
  await read(await call(`${url}/v1/responses/resp_1?stream=true&starting_after=12`, { method: 'GET' }).reply)
  t.match(await settled.next(), { outcome: 'truncated' }, 'half an event is no end')
  const first = await call(`${url}/v1/responses`, { body: '{"model":"m","stream":true,"input":"hi"}' }).reply
  t.match((await read(first)).bytes.toString(), /^event: response\.failed\n/, 'one that is told for the first time has an end')
  t.match(await settled.next(), { outcome: 'truncated' })
})

t.test('a response that is streamed again is judged at its end, and counted once', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { drain: { maxMs: 5_000 } } })
  const url = await listen(app)
  const whole = replyFixture('responses.sse').toString()
  const cut = whole.slice(0, whole.indexOf('event: response.completed'))
  const stream = { 'content-type': 'text/event-stream' }
  const get = async () => await read(await call(`${url}/v1/responses/resp_1?stream=true&starting_after=2`, { method: 'GET' }).reply)
  upstream.queue({ headers: stream, body: whole }, { headers: stream, body: cut })
  t.equal((await get()).bytes.toString(), whole)
  t.match(await settled.next(), { outcome: 'ok', usage: { tokens: null, missing: null }, abortedBy: null })
  const { bytes } = await get()
  t.ok(bytes.toString().startsWith(cut))
  t.match(bytes.toString().slice(cut.length), /^event: response\.failed\n/)
  t.match(await settled.next(), {
    outcome: 'truncated', errorCode: 'upstream_aborted', usage: { tokens: null, missing: null }, abortedBy: 'upstream',
  })
  upstream.queue({ headers: stream, body: whole, stallAt: cut.length })
  const left = call(`${url}/v1/responses/resp_1?stream=true`, { method: 'GET' })
  ;(await left.reply).once('data', () => left.request.destroy())
  t.match(await settled.next(), { outcome: 'client_abort', usage: { tokens: null, missing: null } })
  t.equal(await upstream.seen.at(-1)?.aborted, true, 'nothing of it is waited for')
  t.match(JSON.parse((await get()).bytes.toString()), { object: 'response' }, 'one that is a document')
  t.match(await settled.next(), { outcome: 'ok', usage: { tokens: null } })
})

t.test('where nothing has limits, a response that is told again counts nothing', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await hosts[3].start(t, upstream.url)
  const url = await listen(app)
  const [answer] = await Promise.all([settled.next(), read(await call(`${url}/v1/responses/resp_1`, { method: 'GET' }).reply)])
  t.match(answer, { outcome: 'ok', usage: { tokens: null, missing: null } })
})
