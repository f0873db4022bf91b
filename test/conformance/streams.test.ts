/** Checks 55-60 of the checklist: streams pass at once and as they are, and fail so that the caller notices. */
import { connect } from 'node:net'
import t from 'tap'
import { replyFixture, Signal, type Script } from '../helpers/upstream.js'
import { calls, credentials, plain, send, type Call, type Change } from './calls.js'
import { keys, startGateway, type Setup } from './gateway.js'

let gateway: Setup
t.before(async () => { gateway = await startGateway(t) })

interface Streamed {
  readonly call: Call
  readonly change: Change
  readonly fixture: string
}

function streamed (id: string, fixture: string, fields: object, path?: string): Streamed {
  const call = plain(id)
  return { call, fixture, change: { body: JSON.stringify({ ...JSON.parse(call.body), ...fields }), ...(path !== undefined && { path }) } }
}

const sse = '/v1beta/models/model-1:streamGenerateContent?alt=sse'
const streams: readonly Streamed[] = [
  streamed('chat_completions', 'chat_completions.include_usage.sse', { stream: true, stream_options: { include_usage: true } }),
  streamed('responses', 'responses.sse', { stream: true }),
  streamed('images', 'images.sse', { stream: true }),
  streamed('messages', 'messages.sse', { stream: true }),
  streamed('generate_content.streamGenerateContent', 'generate_content.stream.sse', {}, sse),
]

t.test('check 55: no byte waits for the next one: each event arrives before the one after it is sent', async (t) => {
  for (const { call, change, fixture } of streams) {
    const sent = replyFixture(fixture)
    const ends = [0, ...[...sent.toString('latin1').matchAll(/\r\n\r\n|\n\n/g)].map((match) => match.index + match[0].length)]
    const arrivals = new Signal<number>()
    const waited: number[] = []
    let arrived = 0
    gateway.upstream.queue({
      fixture,
      split: 'events',
      async before (write) {
        while (arrived < Number(ends[write])) arrived = await arrivals.next()
        waited.push(write)
      },
    })
    const reply = await send(gateway.origin, call, { ...change, onBytes: (sofar) => arrivals.push(sofar.length) })
    t.ok(reply.bytes.equals(sent), `${call.id}: the same bytes`)
    t.same(waited, [...ends.keys()], 'every event waited for the one before it')
    t.match(reply.headers, { 'content-type': /^text\/event-stream/, 'x-accel-buffering': 'no', 'cache-control': /no-cache/ })
  }
})

t.test('checks 55 and 56: event boundaries, CRLF and an emoji survive any split', async (t) => {
  for (const { call, change, fixture } of streams) {
    for (const crlf of [false, true]) {
      const body = Buffer.from(replyFixture(fixture).toString().replaceAll('\r\n', '\n').replaceAll('\n', crlf ? '\r\n' : '\n'))
      gateway.upstream.queue({ headers: { 'content-type': 'text/event-stream' }, body, split: 'bytes' })
      const reply = await send(gateway.origin, call, change)
      t.ok(reply.bytes.equals(body), `${call.id}, ${crlf ? 'CRLF' : 'LF'}`)
    }
  }
})

t.test('check 57: nothing is added: no event line and no [DONE] for Gemini, event lines kept for Messages', async (t) => {
  const { origin } = gateway
  const [, , , messages, gemini] = streams
  const array = await send(origin, plain('generate_content.streamGenerateContent'))
  t.ok(array.bytes.equals(replyFixture('generate_content.stream.json')), 'the array form')
  const google = await send(origin, gemini?.call ?? plain(''), gemini?.change)
  t.notMatch(google.text, /event:|\[DONE\]/)
  const typed = await send(origin, messages?.call ?? plain(''), messages?.change)
  t.ok(typed.bytes.equals(replyFixture('messages.sse')))
})

t.test('check 57: a chat stream that did not ask for usage gets every byte but the usage', async (t) => {
  const { origin, upstream } = gateway
  const call = plain('chat_completions')
  const body = JSON.stringify({ ...JSON.parse(call.body), stream: true })
  const reply = await send(origin, call, { body })
  t.match(upstream.seen.at(-1)?.json, { stream_options: { include_usage: true } })
  const asked = replyFixture('chat_completions.include_usage.sse').toString()
  t.equal(reply.text, asked.replace(/data: \{[^\n]*"choices":\[\],[^\n]*\n\n/, ''))
})

t.test('check 58: comments between events pass', async (t) => {
  for (const { call, change, fixture } of streams) {
    const body = ': keepalive\n\n' + replyFixture(fixture).toString().replaceAll('\n\n', '\n\n: keepalive\n\n')
    gateway.upstream.queue({ headers: { 'content-type': 'text/event-stream' }, body, split: 'events' })
    t.equal((await send(gateway.origin, call, change)).text, body, call.id)
  }
})

const told: Readonly<Record<string, RegExp>> = {
  chat_completions: /data: \{"error":\{"message":"Connection error: the model provider broke off its reply\.","type":"server_error","param":null,"code":"upstream_aborted"\}[^\n]*\}\n\n$/,
  responses: /event: response\.failed\ndata: \{"type":"response\.failed",.*"status":"failed","error":\{"code":"upstream_aborted","message":"Connection error: the model provider broke off its reply\."\}[^\n]*\n\n$/,
  images: /data: \{"error":\{"message":"Connection error: the model provider broke off its reply\."[^\n]*\}\n\n$/,
  messages: /event: error\ndata: \{"type":"error","error":\{"type":"api_error","message":"Connection error: the model provider broke off its reply\."[^\n]*\}\n\n$/,
  'generate_content.streamGenerateContent': /data: \{"error":\{"code":502,"message":"Connection error: the model provider broke off its reply\.","status":"INTERNAL"[^\n]*\}\n\n: Connection error: the model provider broke off its reply\.$/,
}

t.test('check 59: a stream that breaks off between events ends with the error of its protocol', async (t) => {
  for (const { call, change, fixture } of streams) {
    const first = replyFixture(fixture).toString().search(/\r\n\r\n|\n\n/) + (fixture.startsWith('generate') ? 4 : 2)
    gateway.upstream.queue({ fixture, cutAt: first })
    const reply = await send(gateway.origin, call, change)
    t.equal(reply.status, 200)
    t.match(reply.text, told[call.id] ?? /^$/, call.id)
    t.notMatch(reply.text, /\[DONE\]/)
  }
})

t.test('check 59: a stream that breaks off inside an event, and a JSON reply, are cut: never a clean end', async (t) => {
  const scripts: ReadonlyArray<readonly [Streamed, Script]> = [
    ...streams.map((stream) => [stream, { fixture: stream.fixture, cutAt: 25 }] as const),
    [{ call: plain('messages'), change: {}, fixture: '' }, { fixture: 'messages.json', cutAt: 25 }],
  ]
  for (const [{ call, change }, script] of scripts) {
    gateway.upstream.queue(script)
    const reply = await send(gateway.origin, call, change)
    t.equal(reply.clean, false, call.id)
    t.equal(reply.bytes.length, 25)
  }
})

t.test('check 60: an upgrade is answered at once on every address, 426 with a key and 401 without, and POST works after it', async (t) => {
  const before = gateway.upstream.seen.length
  const { hostname, port } = new URL(gateway.origin)
  for (const { path, family } of calls) {
    const given = Object.entries(credentials(family, keys[family])).map(([name, value]) => `${name}: ${value}\r\n`).join('')
    for (const [credential, status] of [[given, '426 Upgrade Required'], ['', '401 Unauthorized']]) {
      const socket = connect(Number(port), hostname)
      socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: ` +
        `13\r\nsec-websocket-key: a2l0LWtpdC1raXQtMTYhIQ==\r\n${credential}\r\n`)
      const text = await new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(String(bytes))))
      socket.destroy()
      t.match(text, new RegExp(`^HTTP/1\\.1 ${status}\\r\\n`), path)
    }
  }
  t.equal(gateway.upstream.seen.length, before)
  t.equal((await send(gateway.origin, plain('responses'))).status, 200)
})
