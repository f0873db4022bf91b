/** Upstreams that close their connection after each reply, and callers that do not take it at once. */
import { createServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import Fastify from 'fastify'
import t from 'tap'
import { endPausedReplies } from '../../plugins/forward/paused-parser.js'
import llmGateway from '../../plugins/index.js'
import { call, gatewayOptions, listen, read, secret } from '../helpers/gateway.js'
import { listening } from '../helpers/listening.js'

/** More than what is held before somebody reads, and little enough for one more read. */
const body = 'a'.repeat(90_000)
const replies = {
  'a length': `content-length: ${body.length}\r\n\r\n${body}`,
  chunks: `transfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  neither: `\r\n${body}`,
}

interface Scope {
  teardown: (close: () => unknown) => unknown
}

interface Answer {
  readonly status: number | undefined
  readonly bytes: Buffer
  readonly cut: boolean
}

/** `close` ends the connection behind the bytes. The reply is handed on once that is known to the gateway. */
async function ask (scope: Scope, reply: string, close: (socket: Socket) => void): Promise<Answer> {
  const upstream = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n${reply}`)
      close(socket)
    })
  })
  const app = Fastify()
  scope.teardown(() => app.close())
  app.addHook('onSend', async (_request, _reply, payload) => {
    await wait(300)
    return payload
  })
  await app.register(llmGateway, gatewayOptions(await listening(scope, upstream)))
  const request = { headers: { authorization: `Bearer ${secret}` }, body: '{"model":"m","messages":[{"role":"user","content":"hi"}]}' }
  const answer = await call(`${await listen(app)}/v1/chat/completions`, request).reply
  return { status: answer.statusCode, ...await read(answer) }
}

for (const [what, reply] of Object.entries(replies)) {
  t.test(`a reply with ${what} that waits for its caller arrives whole where its connection has ended`, async (t) => {
    const { status, bytes, cut } = await ask(t, reply, (socket) => socket.end())
    t.match([status, bytes.length, cut], [200, body.length, false])
  })

  t.test(`a reply with ${what} that waits for its caller is a failure where its connection is reset`, async (t) => {
    const { status, bytes } = await ask(t, reply.slice(0, -10), (socket) => setTimeout(() => socket.resetAndDestroy(), 100))
    t.match([status, bytes.toString()], [502, /upstream_reset/])
  })
}

t.test('a client whose parts are elsewhere is left as it is', async () => {
  endPausedReplies(undefined)
})
