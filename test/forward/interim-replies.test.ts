/** Interim replies (RFC 9110 15.2) of an upstream stay here: its caller asked for none, and some clients know none. */
import { createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { LlmGatewayOptions } from '../../plugins/index.js'
import { call, everyProtocol, listen, read, startGateway } from '../helpers/gateway.js'
import { listening } from '../helpers/listening.js'
import { replyFixture, usageOf } from '../helpers/upstream.js'

const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n'
const processing = 'HTTP/1.1 102 Processing\r\n\r\n'
const document = replyFixture('chat_completions.json')
const stream = replyFixture('chat_completions.include_usage.sse')

/** An upstream that writes what it is told, a moment apart, once a request is all there. */
async function startRaw (t: Test, writes: ReadonlyArray<string | Buffer>): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    let missing = -1
    socket.on('data', async (bytes) => {
      if (missing < 0) {
        const head = bytes.indexOf('\r\n\r\n') + 4
        missing = Number(/content-length: (\d+)/i.exec(bytes.toString('latin1', 0, head))?.[1]) + head
      }
      missing -= bytes.length
      if (missing > 0) return
      missing = -1
      for (const write of writes) {
        socket.write(write)
        await pause(30)
      }
    })
  })
  t.teardown(() => { for (const socket of sockets) socket.destroy() })
  return await listening(t, server)
}

function whole (type: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n`), body])
}

const answer = whole('application/json', document)
const events = whole('text/event-stream', stream)
const cases: Readonly<Record<string, (reply: Buffer) => ReadonlyArray<string | Buffer>>> = {
  'in one piece with its reply': (reply) => [Buffer.concat([Buffer.from(hints), reply])],
  'a while before its reply': (reply) => [hints, reply],
  'several, of several kinds': (reply) => [processing, hints, hints, reply],
  'one that is cut': (reply) => [hints.slice(0, 20), hints.slice(20), reply.subarray(0, 30), reply.subarray(30)],
  'one with large headers': (reply) => [`HTTP/1.1 103 Early Hints\r\nlink: ${'x'.repeat(8_000)}\r\n\r\n`, reply],
  'one of a status that nobody knows': (reply) => ['HTTP/1.1 199 Other\r\n\r\n', reply],
}
const pool = (url: string): Partial<LlmGatewayOptions> => ({
  upstreams: { main: { url }, other: { url } },
  pools: { both: { members: ['main', 'other'], retryOn: ['first_event', 503] } },
  groups: { all: { protocols: everyProtocol, upstream: 'both' } },
})

for (const pooled of [false, true]) {
  t.test(`what comes before a reply is swallowed, and its caller has its answer: ${pooled ? 'a pool' : 'one upstream'}`, async (t) => {
    for (const [how, writes] of Object.entries(cases)) {
      for (const [fixture, reply] of [['chat_completions.json', answer], ['chat_completions.include_usage.sse', events]] as const) {
        const url = await startRaw(t, writes(reply))
        const { app, settled } = await startGateway(t, url, pooled ? pool(url) : {})
        const content = 'x'.repeat(how.includes('large') ? 1_200_000 : 1)
        const messages = [{ role: 'user', content }]
        const asked = { model: 'm', messages, stream: reply === events, stream_options: { include_usage: true } }
        const got = await call(`${await listen(app)}/v1/chat/completions`, { body: JSON.stringify(asked) }).reply
        t.equal(got.statusCode, 200, `${how}, ${fixture}`)
        t.notOk('link' in got.headers)
        t.ok((await read(got)).bytes.equals(replyFixture(fixture)), `${how}, ${fixture}`)
        const { outcome, usage: { tokens } } = await settled.next()
        t.strictSame([outcome, tokens], ['ok', usageOf[fixture]?.leaves], `${how}, ${fixture}`)
      }
    }
  })
}

t.test('a 100 that nobody waits for is told as a connection that was closed: undici closes it', async (t) => {
  const url = await startRaw(t, ['HTTP/1.1 100 Continue\r\n\r\n', answer])
  const { app } = await startGateway(t, url)
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] })
  const reply = await call(`${await listen(app)}/v1/chat/completions`, { body }).reply
  t.equal(reply.statusCode, 502)
  t.match((await read(reply)).bytes.toString(), 'upstream_')
})
