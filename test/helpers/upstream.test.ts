import { connect } from 'node:net'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { endpoints, modelLists } from '../../plugins/protocols/index.js'
import type { Endpoint } from '../../plugins/protocols/index.js'
import { replyFixture, sha256, startUpstream, usageOf } from './upstream.js'

function addressOf ({ family, tail, action }: Endpoint): string {
  const path = tail.join('/').replace(':model', 'vendor/model:free').replace(':id', 'resp_1')
  return `/${family.prefix}/${path}${action === null ? '' : `:${action}`}`
}

const identity: Readonly<Record<string, Record<string, string>>> = {
  openai: {}, anthropic: { 'anthropic-version': '2023-06-01' }, gemini: { 'x-goog-api-key': 'k' },
}

t.test('every endpoint of the protocol table has a native reply', async (t) => {
  const upstream = await startUpstream(t)
  for (const endpoint of [...endpoints, ...Object.values(modelLists).flatMap(({ list, retrieve }) => [...list, ...retrieve])]) {
    const reply = await fetch(upstream.url + addressOf(endpoint), {
      method: endpoint.method,
      headers: identity[endpoint.family.name] ?? {},
      ...(endpoint.method === 'POST' && { body: '{"model":"m"}' }),
    })
    t.equal(reply.status, 200, endpoint.id)
    t.type(await reply.json(), 'object')
  }
})

t.test('what a body asks for decides which fixture answers', async (t) => {
  const upstream = await startUpstream(t)
  const rows: Array<[path: string, body: object, fixture: string]> = [
    ['/v1/chat/completions', { stream: true }, 'chat_completions.sse'],
    ['/v1/chat/completions', { stream: true, stream_options: { include_usage: true } }, 'chat_completions.include_usage.sse'],
    ['/v1/responses', { stream: true }, 'responses.sse'],
    ['/v1/images/edits', { stream: true }, 'images.edits.sse'],
    ['/v1/embeddings', { encoding_format: 'base64' }, 'embeddings.base64.json'],
    ['/v1/messages', { stream: true }, 'messages.sse'],
    ['/v1beta/models/m:streamGenerateContent?alt=sse', {}, 'generate_content.stream.sse'],
    ['/v1beta/models/m:streamGenerateContent', {}, 'generate_content.stream.json'],
  ]
  for (const [path, body, fixture] of rows) {
    const reply = await fetch(upstream.url + path, { method: 'POST', body: JSON.stringify(body) })
    t.ok(Buffer.from(await reply.arrayBuffer()).equals(replyFixture(fixture)), fixture)
    t.equal(reply.headers.get('content-type'), fixture.endsWith('.sse') ? 'text/event-stream' : 'application/json')
  }
  t.equal((await fetch(upstream.url + '/v1/v1/messages', { method: 'POST', body: '{}' })).status, 404, 'no provider serves it')
  const form = new FormData()
  form.set('model', 'm')
  t.equal((await fetch(upstream.url + '/v1/images/edits', { method: 'POST', body: form })).status, 200)
})

t.test('the usage that a fixture reports is the sum of its leaves', async (t) => {
  for (const [name, { leaves }] of Object.entries(usageOf)) {
    const text = replyFixture(name).toString()
    const sum = Object.values(leaves).reduce((a, b) => a + b, 0)
    const totals = [...text.matchAll(/"(?:total_tokens|totalTokenCount)":\s*(\d+)/g)].map((match) => Number(match[1]))
    const expected = totals.at(-1) ?? messagesTotal(text)
    t.equal(sum, expected, name)
  }
})

function messagesTotal (text: string): number {
  const last = (field: string): number => Number([...text.matchAll(new RegExp(`"${field}":\\s*(\\d+)`, 'g'))].at(-1)?.[1])
  return last('input_tokens') + last('cache_read_input_tokens') + last('cache_creation_input_tokens') + last('output_tokens')
}

t.test('requests are recorded byte for byte and usage is totalled', async (t) => {
  const upstream = await startUpstream(t)
  const body = '{ "model":"m",  "stream":false }'
  for (let i = 0; i < 2; i++) {
    await (await fetch(upstream.url + '/v1/messages?beta=true', { method: 'POST', body, headers: { 'X-Odd': 'Yes' } })).text()
  }
  const first = await upstream.requests.next()
  t.match(first, { method: 'POST', url: '/v1/messages?beta=true', sha256: sha256(body), json: { model: 'm' } })
  t.equal(first.body.toString(), body)
  t.equal(first.rawHeaders[first.rawHeaders.findIndex((name) => /^x-odd$/i.test(name)) + 1], 'Yes')
  t.equal(upstream.seen.length, 2)
  t.match(upstream.totals.messages, { input: 400, output: 100, cache_write_1h: 24 })
  t.equal(await first.aborted, false)
})

t.test('a queued script is played instead of the plain reply', async (t) => {
  const upstream = await startUpstream(t)
  const call = async (signal?: AbortSignal): Promise<Response> =>
    await fetch(upstream.url + '/v1/messages', { method: 'POST', body: '{"stream":true}', ...(signal && { signal }) })

  t.test('status, headers and body', async (t) => {
    upstream.queue({ status: 429, headers: { 'retry-after': '3' }, body: { error: 'slow' } })
    const reply = await call()
    t.equal(reply.status, 429)
    t.equal(reply.headers.get('retry-after'), '3')
    t.same(await reply.json(), { error: 'slow' })
  })

  t.test('an encoded body arrives as its own bytes', async (t) => {
    upstream.queue({ fixture: 'messages.sse', encoding: 'gzip' })
    const socket = connect(upstream.port, '127.0.0.1')
    socket.end('POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
    const bytes = Buffer.concat(await socket.toArray())
    const at = bytes.indexOf('\r\n\r\n')
    t.match(bytes.subarray(0, at).toString(), /content-encoding: gzip/)
    t.ok(gunzipSync(bytes.subarray(at + 4)).equals(replyFixture('messages.sse')))
  })

  t.test('writes are split, and each waits for the test', async (t) => {
    const released: number[] = []
    let release = (): void => {}
    const gate = new Promise<void>((resolve) => { release = resolve })
    upstream.queue({
      fixture: 'messages.sse', split: 'events', before: (write) => { released.push(write); return write === 2 ? gate : null },
    })
    const reader = (await call()).body?.getReader()
    let text = ''
    while (!text.includes('content_block_start')) text += Buffer.from((await reader?.read())?.value ?? []).toString()
    t.notMatch(text, /"ping"/)
    release()
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) text += Buffer.from(part.value).toString()
    t.equal(text, replyFixture('messages.sse').toString())
    t.same(released.slice(0, 4), [0, 1, 2, 3])
  })

  t.test('byte by byte and at offsets', async (t) => {
    upstream.queue({ body: 'héllo', split: 'bytes' }, { body: 'hello', split: [1, 3, 99] })
    t.equal(await (await call()).text(), 'héllo')
    t.equal(await (await call()).text(), 'hello')
  })

  t.test('the socket is cut where the script says', async (t) => {
    upstream.queue({ fixture: 'messages.sse', cutAt: 40 }, { cutAt: 'headers' })
    const request = upstream.seen.length
    const reply = await call()
    const first = await reply.body?.getReader().read()
    t.equal(first?.value?.length, 40)
    await t.rejects(call())
    t.equal(await upstream.seen[request]?.aborted, false, 'a cut of ours is not an abort')
  })

  t.test('silence lasts until the other side leaves', async (t) => {
    while (upstream.requests.size > 0) await upstream.requests.next()
    for (const stallAt of ['headers', 0, 10] as const) {
      const controller = new AbortController()
      upstream.queue({ fixture: 'messages.sse', stallAt })
      const pending = call(controller.signal)
      const request = await upstream.requests.next()
      if (stallAt !== 'headers') t.equal((await pending).status, 200)
      controller.abort()
      if (stallAt === 'headers') await t.rejects(pending)
      t.equal(await upstream.aborts.next(), request)
      t.equal(await request.aborted, true)
    }
  })

  t.test('a function answers what the queue does not', async (t) => {
    upstream.respond = ({ json }) => json.stream === true ? { status: 500, body: 'down' } : null
    t.equal((await call()).status, 500)
    t.equal((await fetch(upstream.url + '/v1/models')).status, 200)
    upstream.respond = () => null
  })
})
