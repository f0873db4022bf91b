import { once } from 'node:events'
import { createServer, IncomingMessage, type ServerResponse } from 'node:http'
import { connect, constants } from 'node:http2'
import { createConnection, Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import { drainUpload } from '../../../plugins/core/errors/drain-upload.js'
import { proxyOptions } from '../../../plugins/forward/index.js'
import llmGateway, { auth, errors } from '../../../plugins/index.js'
import { everyProtocol, gatewayOptions, listen, secret, watchSettled } from '../../helpers/gateway.js'
import { startUpstream } from '../../helpers/upstream.js'
import { Wire } from '../../helpers/wire.js'

const half = '.'.repeat(100_000)

t.test('a refused caller that goes on sending its body is cut', { timeout: 120_000 }, async (t) => {
  // Nobody is asked for anything upstream: the address leads nowhere.
  const app = Fastify({ forceCloseConnections: true })
  await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { log: false }))
  t.teardown(() => app.close())
  const wire = new Wire(await listen(app))
  t.teardown(() => wire.destroy())
  const refused = wire.ask([
    'POST /v1/chat/completions HTTP/1.1', 'host: a', 'authorization: Bearer sk-wrong-0123456789', 'content-type: application/json',
    'transfer-encoding: chunked',
  ])
  const dribble = setInterval(() => wire.send('1\r\n.\r\n'), 100)
  t.teardown(() => clearInterval(dribble))
  t.equal((await refused).status, 401)
  // Else until this test's own limit. One more byte that is on its way when it is closed has it reset.
  await wire.closed().catch((error: unknown) => t.match(error, { code: 'ECONNRESET' }))
  t.pass('its connection is closed')
})

t.test('one that closes its side once it has its refusal is let go, and not cut', async (t) => {
  const server = createServer()
  // As the standalone gateway's, which lets a reply finish.
  server.on('clientError', () => {})
  t.teardown(() => server.close())
  server.listen(0)
  await once(server, 'listening')
  const caller = createConnection(Object(server.address()).port)
  caller.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n${'.'.repeat(30_000)}`)
  const [request, response]: [IncomingMessage, ServerResponse] = Object(await once(server, 'request'))
  const drained = drainUpload(request)
  response.write('refused')
  await once(caller, 'data')
  caller.end()
  await drained
  t.equal(request.destroyed, false)
  response.end()
  request.socket.end()
  await once(caller, 'close')
})

t.test('a hook of the host\'s that gathers bodies has bytes, as of a reply', async (t) => {
  const app = Fastify({ forceCloseConnections: true })
  await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { log: false }))
  app.addHook('onSend', async (_request, _reply, payload) => {
    return payload instanceof Readable ? Buffer.concat(await payload.toArray()) : payload
  })
  t.teardown(() => app.close())
  const refused = await fetch(`${await listen(app)}/v1/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: half,
  })
  t.equal(refused.status, 401)
  t.match(await refused.json(), { error: { code: 'missing_api_key' } })
})

t.test('over HTTP/2, too, and it has its reply', { timeout: 60_000 }, async (t) => {
  const app: FastifyInstance = Object(Fastify({ http2: true }))
  await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { log: false }))
  const client = connect(await listen(app))
  t.teardown(async () => {
    client.destroy()
    await app.close()
  })
  const stream = client.request({
    ':method': 'POST',
    ':path': '/v1/chat/completions',
    authorization: 'Bearer sk-wrong-0123456789',
    'content-type': 'application/json',
    'content-length': 10_000_000,
  })
  stream.resume()
  const dribble = setInterval(() => stream.write('.'), 100)
  t.teardown(() => clearInterval(dribble))
  const [headers] = await once(stream, 'response')
  t.match(headers, { ':status': 401 })
  // Else until this test's own limit.
  await once(stream, 'close')
  t.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR)
})

t.test('over HTTP/2 a caller has all of its 413 while its upload is on its way', async (t) => {
  const app: FastifyInstance = Object(Fastify({ http2: true }))
  await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { log: false, validation: { maxBodyBytes: 150_000 } }))
  const client = connect(await listen(app))
  t.teardown(async () => {
    client.destroy()
    await app.close()
  })
  const stream = client.request({
    ':method': 'POST',
    ':path': '/v1/chat/completions',
    authorization: `Bearer ${secret}`,
    'content-type': 'application/json',
    'content-length': 200_000,
  })
  stream.write(half)
  stream.resume()
  const [headers] = await once(stream, 'response')
  t.match(headers, { ':status': 413 })
  const ended = once(stream, 'end').then(() => 'ended')
  t.equal(await Promise.race([ended, pause(2_000, 'waits')]), 'ended')
  stream.end(half)
  await once(stream, 'close')
  t.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR)
})

// Closed while bytes are on their way, a connection is reset: a caller that reads only once it wrote never sees why.
const framings: ReadonlyArray<[name: string, header: string, first: string, rest: string]> = [
  ['declares its length', 'content-length: 200000', half, half],
  ['comes in chunks', 'transfer-encoding: chunked', `186a0\r\n${half}\r\n186a0\r\n${half}`, '\r\n186a0\r\n' + half + '\r\n0\r\n\r\n'],
]
const callers: ReadonlyArray<[name: string, version: string, headers: readonly string[]]> = [
  ['a caller', 'HTTP/1.1', []],
  ['a caller that closes', 'HTTP/1.1', ['connection: Close']],
  ['a proxy of old', 'HTTP/1.0', []],
]
const refusals: ReadonlyArray<[status: number, key: string]> = [[413, secret], [401, 'sk-wrong-0123456789']]
for (const [status, key] of refusals) {
  for (const [caller, version, headers] of callers) {
    for (const [framing, header, first, rest] of framings) {
      // That version has no chunks.
      if (version === 'HTTP/1.0' && header.startsWith('transfer')) continue
      t.test(`the upload of ${caller} that ${framing} is read to its end after a ${status}`, async (t) => {
        const app = Fastify({ forceCloseConnections: true })
        await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { log: false, validation: { maxBodyBytes: 150_000 } }))
        t.teardown(() => app.close())
        const wire = new Wire(await listen(app))
        t.teardown(() => wire.destroy())
        wire.send([
          `POST /v1/chat/completions ${version}`, 'host: a', `authorization: Bearer ${key}`, 'content-type: application/json', header,
          ...headers, '', first,
        ].join('\r\n'))
        const reply = await wire.reply()
        t.equal(reply.status, status)
        const state = await Promise.race([wire.closed().then(() => 'closed'), pause(100, 'open')])
        t.equal(state, 'open', 'while the rest is on its way')
        t.equal(reply.headers.connection, 'close', 'a proxy must not send another request in its place')
        wire.send(rest)
        await wire.closed()
      })
    }
  }
}

t.test('over HTTP/2 an upload without a length that is never ended is cut, and a reply without room', { timeout: 60_000 }, async (t) => {
  const app: FastifyInstance = Object(Fastify({ http2: true }))
  const groups = { all: { protocols: everyProtocol, models: ['m'] } }
  await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { log: false, groups, validation: { maxBodyBytes: 100 } }))
  app.addHook('onSend', async ({ headers }) => { if ('x-wait' in headers) await pause(5_500) })
  const settled = watchSettled(app)
  const url = await listen(app)
  const clients = [connect(url), connect(url, { settings: { initialWindowSize: 0 } })] as const
  t.teardown(async () => {
    for (const client of clients) client.destroy()
    await app.close()
  })
  const head = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const upload = { ':method': 'POST', ':path': '/v1/chat/completions', ...head }
  const unended = clients[0].request(upload).resume()
  unended.write('.'.repeat(200))
  const untakenAndUnended = clients[1].request(upload)
  untakenAndUnended.write('.'.repeat(200))
  const pings = setInterval(() => clients[1].ping(() => {}), 500)
  t.teardown(() => clearInterval(pings))
  const untaken = [
    untakenAndUnended,
    clients[1].request(upload).end('{}'),
    clients[1].request({ ':path': '/v1/models', ...head }).end(),
    clients[1].request({ ':path': '/v1/models' }).end(),
  ]
  const late = clients[0].request({ ':path': '/v1/models', 'x-wait': '1' }).resume().end()
  const ended = Promise.all([late, unended, ...untaken].map(async (stream) => await once(stream.on('error', () => {}), 'close')))
  const statuses = new Set<number>()
  while (statuses.size < 4) statuses.add((await settled.next()).status)
  t.strictSame(statuses, new Set([413, 400, 200, 401]))
  await ended
  t.equal(late.rstCode, constants.NGHTTP2_NO_ERROR, 'one that a hook holds back for longer is not cut before it is sent')
  t.strictSame([unended, ...untaken].map(({ rstCode }) => rstCode), [
    constants.NGHTTP2_NO_ERROR, ...untaken.map(() => constants.NGHTTP2_CANCEL),
  ])
})

t.test('an upload in thousands of tiny chunks, which hold the loop, is cut; one in small chunks is read', async (t) => {
  for (const [bytes, isCut] of [[1, true], [100, false]] as const) {
    const raw = new IncomingMessage(new Socket())
    raw.headers['transfer-encoding'] = 'chunked'
    const drained = drainUpload(raw)
    for (let pieces = 0; pieces < 5_000; pieces += 1) raw.push(Buffer.alloc(bytes))
    raw.push(null)
    raw.complete = true
    await drained
    t.equal(raw.aborted, isCut, `${bytes} bytes`)
  }
})

t.test('a page with which an upstream refuses an upload before its end is one of our errors, and whole', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(async () => await app.close())
  await app.register(httpProxy, { ...proxyOptions(), upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  await app.register(errors)
  // Nothing reads the body here.
  await app.register(auth, { groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'a', group: 'all', secret }] })
  const wire = new Wire(await listen(app))
  t.teardown(() => wire.destroy())
  const refused = wire.ask([
    'POST /v1/chat/completions HTTP/1.1', 'host: a', `authorization: Bearer ${secret}`, 'content-type: application/json',
    `content-length: ${2 * half.length}`,
  ])
  wire.send(half)
  const { raw: { res } } = await upstream.arrivals.next()
  res.writeHead(413, { 'content-type': 'text/html' })
  res.flushHeaders()
  // Not in one turn with its head, so that it is no reply that is handed over whole.
  await pause(100)
  res.end('<h1>413 Request Entity Too Large</h1>')
  const { status, body } = await refused
  t.equal(status, 413)
  t.match(JSON.parse(body), { error: { code: 'upstream_error' } })
})
