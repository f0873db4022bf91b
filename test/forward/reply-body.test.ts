/** How the pieces of a stream leave: what one read of the upstream's socket brought goes out together, a single one at once. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../../plugins/index.js'
import { gatewayOptions, listen, secret } from '../helpers/gateway.js'
import { listening } from '../helpers/listening.js'
import { Signal } from '../helpers/upstream.js'
import { Wire } from '../helpers/wire.js'

const request = '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'
const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

t.test('pieces that come together leave as one, and none is lost or swapped where one follows many', async (t) => {
  const upstream = createServer()
  const app = Fastify()
  const bodies = new Signal<string>()
  // Of the host's, which changes nothing.
  app.addHook('onSend', async (_request, _reply, payload) => {
    if (payload instanceof Readable) payload.once('end', () => bodies.push('ended'))
    return payload
  })
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions(await listening(t, upstream)))
  const wire = new Wire(await listen(app))
  t.teardown(() => wire.destroy())
  const arrived = new Promise<Socket>((resolve) => { upstream.once('connection', resolve) })
  const reply = wire.ask([
    'POST /v1/chat/completions HTTP/1.1', 'host: gateway.example', 'content-type: application/json', `authorization: Bearer ${secret}`,
  ], request)
  const socket = await arrived
  await once(socket, 'data')

  let seen = ''
  wire.socket.on('data', (text: string) => { seen += text })
  let events = 0
  /** Sends so many events in one write, and waits until the caller has the last of them. */
  async function together (count: number, before = '', first = ''): Promise<void> {
    const texts = Array.from({ length: count }, (_, at) => (
      `data: {"choices":[{"delta":{"content":"${++events}"}}]${at === 0 && first !== '' ? `,"first":"${first}"` : ''}}\n\n`
    ))
    socket.write(before + texts.map(chunk).join(''))
    while (!seen.includes(`"${events}"`)) await once(wire.socket, 'data')
  }

  await together(1, head)
  for (const count of [1, 4, 4, 1, 1, 3, 1, 2]) await together(count)
  // Nor where a short one follows a long one.
  for (const count of [1, 3, 1]) await together(count, '', 'x'.repeat(5_000))
  const last = ['more', 'done'].map((text) => chunk(`data: {"choices":[{"delta":{"content":"${++events}"}}],"${text}":1}\n\n`))
  socket.write(`${last.join('')}${chunk('data: [DONE]\n\n')}0\r\n\r\n`)
  const { status, body } = await reply
  t.equal(status, 200)
  const parts = body.split(/(?:^|\r\n)[0-9a-f]+\r\n/).slice(1, -1)
  const numbers = parts.map((part) => [...part.matchAll(/"content":"(\d+)"/g)].map(([, number]) => Number(number)))
  t.strictSame(numbers.flat(), Array.from({ length: events }, (_, at) => at + 1), 'every event, in order')
  // The first of many finds nothing that tells of the others, once; from then on they are expected, until one comes alone.
  // Node 26 gathers the last ones itself.
  t.match(numbers.map((part) => part.length).join(), /^1,1,1,3,4,1,1,1,2,1,1,1,1,3,1,(?:1,1|2)$/)
  t.equal(await bodies.next(), 'ended')
})

t.test('what came in one read with an end in the middle of an event goes out before the reply is broken off', async (t) => {
  const upstream = createServer((socket) => {
    const events = [1, 2, 3, 4].map((content) => chunk(`data: {"choices":[{"delta":{"content":"${content}"}}]}\n\n`))
    socket.once('data', () => socket.write(head + String(events[0])))
    told.next().then(() => socket.write(`${events.slice(1).join('')}${chunk('data: {"cho')}0\r\n\r\n`))
  })
  const told = new Signal<null>()
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions(await listening(t, upstream)))
  const wire = new Wire(await listen(app))
  t.teardown(() => wire.destroy())
  let seen = ''
  wire.socket.on('data', (text: string) => {
    if (seen === '') told.push(null)
    seen += text
  })
  const reply = wire.ask([
    'POST /v1/chat/completions HTTP/1.1', 'host: gateway.example', 'content-type: application/json', `authorization: Bearer ${secret}`,
  ], request)
  await t.rejects(reply)
  t.strictSame([...seen.matchAll(/"content":"(\d)"/g)].map(([, content]) => content), ['1', '2', '3', '4'])
})
