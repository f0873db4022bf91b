import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { inPieces } from '../../plugins/forward/body-pieces.js'
import llmGateway, { metrics, proxyOptions, usage } from '../../plugins/index.js'
import { call, gatewayOptions, listen, read, startGateway } from '../helpers/gateway.js'
import { listening } from '../helpers/listening.js'
import { sha256, Signal, startUpstream } from '../helpers/upstream.js'
import { inOrder, overloaded, startPool } from '../upstreams/pool-gateway.js'

const megabyte = 1024 * 1024
const large = JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'x'.repeat(3 * megabyte) }] })
const path = '/v1/chat/completions'

async function upstreamThat (t: Test, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  return await listening(t, createServer(answer))
}

t.test('one piece of a large body is read in a turn', async (t) => {
  const body = Buffer.alloc(4 * megabyte, 'x')
  const { body: stream } = inPieces({ path: '/', method: 'POST', body })
  if (!(stream instanceof Readable)) throw new Error('it is whole')
  const turn = { bytes: 0, most: 0, all: 0 }
  stream.on('data', (piece: Buffer) => { turn.bytes += piece.length })
  for (let isOver: unknown = false; isOver === false;) {
    isOver = await Promise.race([once(stream, 'end'), nextTurn(false)])
    turn.most = Math.max(turn.most, turn.bytes)
    turn.all += turn.bytes
    turn.bytes = 0
  }
  t.equal(turn.all, body.length)
  t.ok(turn.most <= 2 * 256 * 1024, `${turn.most} bytes in one turn`)
  const whole = { path: '/', method: 'POST', body: body.subarray(0, megabyte) } as const
  t.equal(inPieces(whole), whole, 'up to 1 MB a body is sent as it is')
})

t.test('the upstream gets a large body with its length, and the connection serves the next request', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, { forward: { connections: 1 } })
  const host = Fastify()
  await host.register(llmGateway, gatewayOptions(upstream.url, { routes: false, forward: { connections: 1 } }))
  const mount = { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', ...proxyOptions() }
  await host.register(httpProxy, {
    ...mount,
    replyOptions: { rewriteRequestHeaders: (_, { 'content-length': length, ...others }) => ({ ...others, 'Content-Length': length }) },
  })
  t.teardown(() => host.close())
  const sent: boolean[] = []
  const watch = (message: unknown): void => { sent.push(Object(message).request.body instanceof Readable) }
  subscribe('undici:request:create', watch)
  t.teardown(() => unsubscribe('undici:request:create', watch))
  for (const origin of [await listen(app), await listen(host)]) {
    for (const body of [large, '{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]}', large]) {
      const reply = await call(`${origin}${path}`, { body }).reply
      t.equal(reply.statusCode, 200)
      await read(reply)
      const { headers, rawHeaders, sha256: seen } = await upstream.requests.next()
      t.equal(seen, sha256(body))
      t.match(headers, { 'content-length': String(body.length), 'transfer-encoding': undefined })
      t.equal(rawHeaders.filter((name) => name.toLowerCase() === 'content-length').length, 1)
    }
  }
  t.strictSame(sent, [true, false, true, true, false, true], 'in pieces where it is large')
})

t.test('a large body is sent to the next member as well', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  gateway.members[0]?.queue(overloaded)
  const reply = await call(`${await listen(gateway.app)}${path}`, { body: large }).reply
  t.equal(reply.statusCode, 200)
  t.strictSame(gateway.members.map(({ seen }) => seen.map(({ sha256: bytes }) => bytes)), [[sha256(large)], [sha256(large)]])
})

t.test('an upstream that answers before it has read all of a large body is heard', async (t) => {
  const url = await upstreamThat(t, (_request, response) => {
    response.writeHead(413, { 'content-type': 'application/json' }).end('{"error":{"message":"too large for us"}}')
  })
  const { app } = await startGateway(t, url)
  const reply = await call(`${await listen(app)}${path}`, { body: large }).reply
  t.equal(reply.statusCode, 413)
  t.match((await read(reply)).bytes.toString(), /too large for us/)
})

t.test('an upstream that breaks off in the middle of a large body is 502', async (t) => {
  const url = await upstreamThat(t, (request) => request.once('data', () => request.socket.destroy()))
  const { app } = await startGateway(t, url)
  t.equal((await call(`${await listen(app)}${path}`, { body: large }).reply).statusCode, 502)
})

t.test('the caller of a large body that nobody reads leaves, and its request is settled', async (t) => {
  const arrivals = new Signal<IncomingMessage>()
  const url = await upstreamThat(t, (request) => arrivals.push(request.pause()))
  const { app, settled } = await startGateway(t, url)
  const asked = call(`${await listen(app)}${path}`, { body: large.replace('x', 'x'.repeat(20 * megabyte)) })
  const request = await arrivals.next()
  asked.request.destroy()
  t.equal((await settled.next()).outcome, 'client_abort')
  const left = new Promise((resolve) => request.once('error', () => {}).once('close', resolve))
  request.resume()
  await left
  t.notOk(request.complete, 'and the upstream is left')
})

t.test('an upstream that answers before it has all of an upload is heard where no plugin reads it', async (t) => {
  const url = await upstreamThat(t, (_, response) => {
    response.writeHead(413, { 'content-type': 'application/json' }).end('{"error":{"message":"too large"}}')
  })
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(metrics)
  await app.register(usage)
  await app.register(httpProxy, { upstream: url, prefix: '/v1', rewritePrefix: '/v1', ...proxyOptions() })
  const caller = request(`${await listen(app)}/v1/responses`, { method: 'POST', headers: { 'content-type': 'application/json' } })
  t.teardown(() => caller.destroy())
  caller.on('error', () => {}).write('{"model":"m","input":"')
  const reply = await new Promise<IncomingMessage>((resolve, reject) => caller.on('response', resolve).on('error', reject))
  t.equal(reply.statusCode, 413)
  t.strictSame(await read(reply), { bytes: Buffer.from('{"error":{"message":"too large"}}'), cut: false })
})
