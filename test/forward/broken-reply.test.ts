/** Why a reply failed is logged, and not what could not be parsed of it: that is in the error, and may be the model's words. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import { call, listen, read, secret, startGateway } from '../helpers/gateway.js'
import { startHost } from '../helpers/host.js'
import { listening } from '../helpers/listening.js'

const chat = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
const words = 'what the model said in confidence'
const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nc\r\ndata: {"a":1\r\n'

async function startUpstream (t: Test): Promise<{ url: string, socket: Promise<Socket> }> {
  const server = createServer()
  return {
    url: await listening(t, server), socket: once(server, 'connection').then(async ([socket]) => once(socket, 'data').then(() => socket)),
  }
}

const starts: ReadonlyArray<readonly [name: string, toldBefore: string, start: (
  t: Test, url: string, server: FastifyServerOptions
) => Promise<FastifyInstance>]> = [
  ['own routes', 'the upstream gave no reply', async (t, url, server) => (await startGateway(t, url, {}, server)).app],
  ['an adapted mount', 'response errored', async (t, url, server) => await startHost(t, url, { server, adapted: true })],
]

for (const [name, toldBefore, start] of starts) {
  for (const [when, early, late] of [
    ['within a stream', head, `zz\r\n${words}\r\n`], ['before its headers', '', `HTTP/1.1 abc\r\n${words}\r\n\r\n`],
  ] as const) {
    t.test(`on ${name}, ${when}`, async (t) => {
      const lines: string[] = []
      const upstream = await startUpstream(t)
      const app = await start(t, upstream.url, { logger: { stream: { write: (line: string) => lines.push(line) } } })
      const { reply } = call(`${await listen(app)}/v1/chat/completions`, { body: chat })
      const socket = await upstream.socket
      if (early !== '') {
        socket.write(early)
        await reply
      }
      socket.write(late)
      await read(await reply)
      await app.close()
      const told = lines.filter((line) => line.includes(early === '' ? toldBefore : 'broke off'))
      t.equal(told.length, 1)
      t.match(told.join(), /"level":40.*HTTPParserError.*Response does not match/)
      t.notMatch(lines.join(''), words)
    })
  }
}

t.test('the log says how an upstream could not be reached, and nothing of one where the gateway itself refuses', async (t) => {
  const closed = createServer()
  const url = await listening(t, closed)
  await new Promise((resolve) => closed.close(resolve))
  const noSecret = async (): Promise<string> => { throw new Error('none') }
  for (const [credential, told] of [['sk-upstream', 1], [noSecret, 0]] as const) {
    const lines: string[] = []
    const logger = { stream: { write: (line: string) => lines.push(line) } }
    const { app } = await startGateway(t, url, { upstreams: { main: { url, credential } } }, { logger })
    const { statusCode } = await app.inject({
      method: 'POST',
      url: '/v1/chat/completions',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      payload: chat,
    })
    t.ok(statusCode >= 500)
    const reasons = lines.filter((line) => line.includes('the upstream gave no reply'))
    t.equal(reasons.length, told)
    t.match(reasons.join(), told === 1 ? /"reason":"Error: connect ECONNREFUSED .*"code":"ECONNREFUSED"/ : /^$/)
  }
})
