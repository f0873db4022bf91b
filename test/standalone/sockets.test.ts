/**
 * What a caller may do to its connection: be slow, be wrong, go on while its reply is under way. Bytes and ends as they are on the wire.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { askOnce, Wire } from '../helpers/wire.js'
import { start, yaml } from './run.js'

interface Caller {
  readonly socket: Socket
  /** All that came. */
  readonly text: () => string
  /** Resolves once that matches. */
  readonly seen: (pattern: RegExp) => Promise<void>
}

/** A caller that does not close its side when the other one does, as one that means harm. */
function caller (origin: string): Caller {
  const socket = connect({ port: Number(new URL(origin).port), host: '127.0.0.1', allowHalfOpen: true })
  let text = ''
  socket.setEncoding('latin1')
  socket.on('data', (more: string) => { text += more })
  socket.on('error', () => {})
  const seen = async (pattern: RegExp): Promise<void> => {
    while (!pattern.test(text)) {
      if (socket.destroyed) throw new Error(`closed after ${text}`)
      await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => { throw new Error(`closed after ${text}`) })])
    }
  }
  return { socket, text: () => text, seen }
}

/** Resolves once the other side has no socket any more: a byte that is sent to it then is answered by a reset. */
async function gone ({ socket }: Caller): Promise<void> {
  for (const until = Date.now() + 15_000; !socket.destroyed;) {
    if (Date.now() > until) throw new Error('the connection is still open')
    socket.write('x')
    await wait(20)
  }
}

const head = (path: string, ...more: readonly string[]): string =>
  [`POST ${path} HTTP/1.1`, 'host: a', 'authorization: Bearer key-a', 'content-type: application/json', ...more, '', ''].join('\r\n')
const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] })
const whole = head('/v1/chat/completions', `content-length: ${body.length}`) + body

/** The next reply stops after its first event until it is released. */
function heldReply (upstream: Upstream): () => void {
  let release = (): void => {}
  const gate = new Promise<void>((resolve) => { release = resolve })
  upstream.queue({ fixture: 'chat_completions.include_usage.sse', split: 'events', before: async (write) => write > 0 && await gate })
  return release
}

t.test('who sends half a head or half a body is told 408 in its protocol, and its connection is closed whether it likes it or not', async (
  t
) => {
  const upstream = await startUpstream(t)
  const { origin, log } = await start(
    t, yaml(upstream.url, ['key-a'], 'listen: { requestTimeoutMs: 1000 }').replace('responses]', 'messages]')
  )
  const cases: ReadonlyArray<readonly [name: string, bytes: string, envelope: RegExp]> = [
    ['nothing', '', /"error":\{"message"/],
    ['half a head', 'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n', /"error":\{"message"/],
    ['half a body', head('/v1/chat/completions', 'content-length: 100') + '{', /"error":\{"message"/],
    ['half a body of nobody', head('/nowhere', 'content-length: 100') + '{', /"error":\{"message"/],
    [
      'half a body of another protocol',
      head('/v1/messages', 'anthropic-version: 2023-06-01', 'content-length: 100') + '{',
      /\{"type":"error"/,
    ],
  ]
  await Promise.all(cases.map(async ([name, bytes, envelope]) => {
    const slow = caller(origin)
    slow.socket.write(bytes)
    await slow.seen(/\}$/)
    t.match(slow.text(), /^HTTP\/1\.1 408 Request Timeout\r\n.*connection: close/s, name)
    t.match(slow.text(), envelope, name)
    await gone(slow)
  }))
  t.match(log(), /"protocol":"messages".*"outcome":"client_error","status":408,"error":"request_timeout"/)
})

t.test('who ends its side before its body is complete has left, and is told so where it still reads', async (t) => {
  const { origin, log } = await start(t, yaml('http://127.0.0.1:9', ['key-a']))
  const cases: ReadonlyArray<readonly [bytes: string, message: RegExp]> = [
    [head('/v1/chat/completions', 'content-length: 100') + '{', /"The request broke off before its body was complete\."/],
    [head('/v1/chat/completions', 'transfer-encoding: chunked') + '2\r\n{', /"The request broke off before its body was complete\."/],
    ['POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n', /"The request could not be read\."/],
  ]
  for (const [bytes, message] of cases) {
    const early = caller(origin)
    early.socket.write(bytes)
    await wait(50)
    early.socket.end()
    await early.seen(/\}$/)
    t.match(early.text(), /^HTTP\/1\.1 400 /)
    t.match(early.text(), message)
  }
  const lines = (): string[] => log().split('\n').filter((line) => line.includes('"llm"'))
  while (lines().length < 2) await wait(10)
  t.match(lines().map((line) => JSON.parse(line).llm), Array(2).fill({
    outcome: 'client_abort', status: 400, error: 'request_aborted', aborted_by: 'client',
  }))
})

t.test('what is completed too late is not served any more', async (t) => {
  const upstream = await startUpstream(t)
  const { origin } = await start(t, yaml(upstream.url, ['key-a'], 'listen: { requestTimeoutMs: 1000 }'))
  const late = caller(origin)
  late.socket.write(whole.slice(0, 40))
  await late.seen(/\}$/)
  late.socket.write(whole.slice(40))
  await gone(late)
  t.same(late.text().match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 408'])
  t.equal(upstream.seen.length, 0)
})

t.test('what is no HTTP after a body that came later than its reply is told 400', async (t) => {
  const { origin } = await start(t, yaml('http://127.0.0.1:9', ['key-a']))
  const wrong = caller(origin)
  wrong.socket.write(head('/v1/chat/completions', 'content-length: 3').replace('key-a', 'key-x') + '{')
  await wrong.seen(/\}$/)
  wrong.socket.write('}\nnonsense\r\n\r\n')
  await wrong.seen(/HTTP\/1\.1 400 Bad Request/)
  await gone(wrong)
})

t.test('what is no HTTP is told 400, and closed as well', async (t) => {
  const { origin } = await start(t, yaml('http://127.0.0.1:9', []))
  const wrong = caller(origin)
  wrong.socket.write('SSH-2.0-OpenSSH\r\n\r\n')
  await wrong.seen(/\}$/)
  t.match(wrong.text(), /^HTTP\/1\.1 400 Bad Request\r\n[^{]*\{"error":[^\r\n]*$/s, 'one answer')
  await gone(wrong)
})

const after: ReadonlyArray<readonly [name: string, bytes: string]> = [
  ['what is no HTTP', '\x00\x01 nonsense\r\n\r\n'],
  ['half a second head', 'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n'],
  ['a second request with half a body', head('/v1/chat/completions', 'content-length: 100') + '{'],
  ['a second request with a broken body', head('/v1/chat/completions', 'transfer-encoding: chunked') + 'zz\r\n'],
  ['a whole second request and then what is no HTTP', `${whole}nonsense\r\n\r\n`],
]
t.test('nothing is written into a reply that is under way, and its connection is closed after it', async (t) => {
  const upstream = await startUpstream(t)
  const { origin } = await start(t, yaml(upstream.url, ['key-a'], 'listen: { requestTimeoutMs: 1000 }'))
  const releases: Array<() => void> = []
  const busy: Array<readonly [name: string, caller: Caller]> = []
  for (const [name, bytes] of after) {
    releases.push(heldReply(upstream))
    const one = caller(origin)
    busy.push([name, one])
    one.socket.write(whole)
    await one.seen(/data: /)
    one.socket.write(bytes)
  }
  await wait(2_500)
  for (const release of releases) release()
  for (const [name, one] of busy) {
    await one.seen(/\[DONE\]\n\n\r\n0\r\n\r\n/)
    await gone(one)
    t.notMatch(one.text(), /HTTP\/1\.1 4\d\d/, `${name}: nothing within the reply`)
    const [, second = ''] = one.text().split('\r\n0\r\n\r\n')
    t.ok(second === '' || /^HTTP\/1\.1 200 /.test(second), `${name}: nor after it`)
  }
})

t.test('a reply that was given before the body came is not followed by another one', async (t) => {
  const { origin } = await start(t, yaml('http://127.0.0.1:9', ['key-a'], 'listen: { requestTimeoutMs: 1000 }'))
  const early = caller(origin)
  // More than what is sent on the way to its end: what comes behind a whole body is no HTTP.
  early.socket.write(head('/v1/chat/completions', 'content-length: 10000').replace('key-a', 'key-x') + '{')
  await early.seen(/\}$/)
  await gone(early)
  t.same(early.text().match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 401'])
})

t.test('a path that no router can decode is refused without a word of it, whatever its headers say', async (t) => {
  const { origin, log } = await start(t, yaml('http://127.0.0.1:9', ['key-a'], 'log: { level: trace }'))
  for (const [path, ...headers] of [
    ['/%zz?key=c4nary'], ['/%zz?key=c4nary', 'anthropic-version: 2023-06-01'], ['/v1/%zz?key=c4nary'],
    ['/v1beta/models/%c3%28:generateContent?key=c4nary'],
  ]) {
    const reply = await askOnce(origin, [`GET ${path} HTTP/1.1`, 'host: a', ...headers])
    t.equal(reply.status, 400)
    t.match(JSON.parse(reply.body), headers.length > 0 ? { type: 'error' } : { error: { message: String } })
    t.notMatch(reply.body, /c4nary|FST_|zz/)
  }
  t.notMatch(log(), 'c4nary')
})

t.test('what two servers could read in two ways is refused: another coding than chunked alone, hosts that are none', async (t) => {
  const upstream = await startUpstream(t)
  const { origin } = await start(t, yaml(upstream.url, ['key-a']))
  const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  const ask = async (version: string, ...headers: readonly string[]): Promise<number> => {
    const wire = new Wire(origin)
    t.teardown(() => wire.destroy())
    wire.send([
      `POST /v1/chat/completions HTTP/${version}`, 'authorization: Bearer key-a', 'content-type: application/json', ...headers, '', '',
    ].join('\r\n') + chunked)
    return (await wire.reply()).status
  }
  t.equal(await ask('1.1', 'host: a', 'transfer-encoding: Chunked'), 200)
  t.equal(await ask('1.1', 'host: [::1]:8080', 'transfer-encoding: chunked'), 200)
  t.equal(upstream.seen.length, 2)
  for (const headers of [
    ['host: a', 'transfer-encoding: gzip, chunked'],
    ['host: a', 'transfer-encoding: identity', 'transfer-encoding: chunked'],
    ['host: a, b', 'transfer-encoding: chunked'],
    ['host: a b', 'transfer-encoding: chunked'],
    ['host: b@a', 'transfer-encoding: chunked'],
    ['host:', 'transfer-encoding: chunked'],
  ]) {
    t.equal(await ask('1.1', ...headers), 400, String(headers))
  }
  t.equal(await ask('1.0', 'host: a', 'transfer-encoding: chunked'), 400, 'HTTP/1.0 has no chunks')
  t.equal((await askOnce(origin, ['GET /health HTTP/1.1', 'host: a, b'])).status, 400)
  t.equal((await askOnce(origin, ['GET /health HTTP/1.1', 'host: '])).status, 400)
  t.equal((await askOnce(origin, ['GET /health HTTP/1.1', 'host: a'])).status, 200)
  t.equal(upstream.seen.length, 2, 'nothing of it went upstream')
})

t.test('who takes nothing of what it asks for is cut, and so is who asks for nothing; who waits for a slow upstream is not', async (t) => {
  const upstream = await startUpstream(t)
  const { origin, log } = await start(t, yaml(upstream.url, ['key-a'], 'forward: { idleTimeoutMs: 1000 }'))
  // Without a head, as the same time holds for a body that stalls.
  upstream.queue({ stallAt: 'headers' })
  const waiting = caller(origin)
  waiting.socket.write(whole)
  const { raw: { res: held } } = await upstream.requests.next()
  const [idle, greedy] = [caller(origin), caller(origin)]
  greedy.socket.pause()
  // More than all buffers on the way hold, and one more behind it: in one write, as what comes later may not be read any more.
  greedy.socket.write('GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(300) + whole.replace('key-a', 'key-x'))
  while (!/"status":401|"aborted_by":"client"/.test(log())) await wait(20)
  t.match(log(), /"aborted_by":"client"/)
  greedy.socket.resume()
  await Promise.all([gone(greedy), gone(idle)])
  held.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: [DONE]\n\n')
  await waiting.seen(/\[DONE\]/)
  waiting.socket.destroy()
})
