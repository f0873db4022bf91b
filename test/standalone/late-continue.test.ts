/** Callers that wait for `100 Continue` before they send a body, as curl does with a large one. */
import t from 'tap'
import { startUpstream } from '../helpers/upstream.js'
import { Wire } from '../helpers/wire.js'
import { start, yaml } from './run.js'

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })

function head (key: string, length: number, path = '/v1/chat/completions'): string {
  return [
    `POST ${path} HTTP/1.1`, 'host: a', `authorization: Bearer ${key}`, 'content-type: application/json', 'expect: 100-continue',
    `content-length: ${length}`, '', '',
  ].join('\r\n')
}

t.test('a caller whose head is refused is told so, and not to send its body', async (t) => {
  const upstream = await startUpstream(t)
  const { origin } = await start(t, yaml(upstream.url, ['key-a'], 'validation: { maxBodyBytes: 200000 }'))
  for (const [status, key, length, path] of [
    [401, 'wrong', body.length], [401, 'wrong', 150_000], [413, 'key-a', 300_000], [404, 'key-a', 150_000, '/v1/unknown'],
    [405, 'key-a', 20, '/v1/models'],
  ] as const) {
    const wire = new Wire(origin)
    wire.send(head(key, length, path))
    const reply = await wire.reply()
    t.match([reply.status, reply.headers['connection']], [status, 'close'], `${status} of ${length} bytes`)
    wire.destroy()
  }
  const impatient = new Wire(origin)
  impatient.send(head('wrong', 150_000) + 'x'.repeat(150_000))
  t.equal((await impatient.reply()).status, 401, 'who did not wait reads it as well')
  await impatient.closed()
  t.equal(upstream.seen.length, 0)
})

t.test('a caller that is let in is told to send it, and its connection goes on', async (t) => {
  const upstream = await startUpstream(t)
  const { origin } = await start(t, yaml(upstream.url, ['key-a']))
  const wire = new Wire(origin)
  t.teardown(() => wire.destroy())
  for (let round = 0; round < 2; round += 1) {
    wire.send(head('key-a', body.length))
    t.equal((await wire.reply()).status, 100)
    wire.send(body)
    const reply = await wire.reply()
    t.match([reply.status, reply.headers['connection']], [200, undefined])
  }
  wire.send(head('key-a', body.length).replace('expect', 'connection: close\r\nexpect') + body)
  t.equal((await wire.reply()).status, 100, 'nor does it harm one that did not wait')
  t.match(await wire.reply(), { status: 200, headers: { connection: 'close' } })
  await wire.closed()
  t.strictSame(upstream.seen.map((seen) => [seen.body.toString(), seen.headers.expect]), Array(3).fill([body, undefined]))
})

t.test('who expects what nobody knows is served, refused and logged as any caller', async (t) => {
  const upstream = await startUpstream(t)
  const { origin, log } = await start(t, yaml(upstream.url, ['key-a']))
  const wire = new Wire(origin)
  t.teardown(() => wire.destroy())
  wire.send(head('key-a', body.length).replace('100-continue', '200-maybe') + body)
  t.equal((await wire.reply()).status, 200)
  t.strictSame(upstream.seen.map((seen) => [seen.body.toString(), seen.headers.expect]), [[body, undefined]])
  wire.send(head('wrong', body.length).replace('100-continue', '200-maybe') + body)
  const refused = await wire.reply()
  t.equal(refused.status, 401)
  t.match(JSON.parse(refused.body), { error: { code: 'invalid_api_key' } })
  t.match(log(), `"id":"${refused.headers['x-request-id']}"`)
})
