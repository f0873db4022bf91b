/** Replies that are odd in their headers, and requests that are odd in their method. */
import type { OutgoingHttpHeaders } from 'node:http'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { call, everyProtocol, gatewayOptions, listen, read, secret, startGateway, watchSettled } from '../helpers/gateway.js'
import { replyFixture, startUpstream, usageOf } from '../helpers/upstream.js'

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const fixture = replyFixture('chat_completions.json')
const leaves = usageOf['chat_completions.json']?.leaves

t.test('two types of a reply are the first one', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const url = await listen(app)
  for (const types of [['application/json', 'application/json'], ['application/json; charset=utf-8', 'text/html']]) {
    upstream.queue({ headers: { 'content-type': types }, body: fixture })
    const reply = await call(`${url}/v1/chat/completions`, { body }).reply
    t.equal(reply.headers['content-type'], types[0])
    t.equal((await read(reply)).bytes.toString(), fixture.toString())
    t.match(await settled.next(), { outcome: 'ok', usage: { tokens: leaves } })
  }
})

t.test('a reply that names no type, or what is none, gets no other', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url))
  const mounted = Fastify()
  t.teardown(() => mounted.close())
  await mounted.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  await mounted.register(httpProxy, { upstream: upstream.url, ...proxyOptions() })
  const hooked: number[] = []
  for (const each of [app, mounted]) each.addHook('onSend', async (_request, reply) => { hooked.push(reply.statusCode) })
  const cases: ReadonlyArray<readonly [status: number, headers: OutgoingHttpHeaders, bytes: Buffer]> = [
    [200, {}, fixture],
    [200, { 'content-length': fixture.length }, fixture],
    [200, { 'content-type': 'json' }, fixture],
    [200, { 'content-length': 0 }, Buffer.alloc(0)],
    [204, {}, Buffer.alloc(0)],
    [304, { etag: '"a"' }, Buffer.alloc(0)],
    [422, {}, Buffer.from('{"error":{"message":"no"}}')],
  ]
  for (const each of [app, mounted]) {
    const settled = watchSettled(each)
    const url = await listen(each)
    for (const [status, headers, bytes] of cases) {
      // A script of its own names a type.
      upstream.respond = ({ raw: { res } }) => {
        res.writeHead(status, headers).end(bytes)
        return { stallAt: 'headers' }
      }
      for (let i = 0; i < 2; i++) {
        const reply = await call(`${url}/v1/chat/completions`, { body }).reply
        t.strictSame([reply.statusCode, reply.headers['content-type']], [status, headers['content-type']])
        const got = await read(reply)
        t.strictSame([got.cut, got.bytes.equals(bytes)], [false, true])
        t.match(await settled.next(), { upstreamReply: { status }, abortedBy: null, holds: 0 })
      }
    }
  }
  t.equal(hooked.length, 4 * cases.length, 'and hooks of the host meet it')
})

t.test('a reply that is packed twice is passed on as one list, and counted', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const url = await listen(app)
  const twice = gzipSync(gzipSync(fixture))
  const cases: ReadonlyArray<readonly [header: string | string[], bytes: Buffer, told: string]> = [
    ['gzip, gzip', twice, 'gzip, gzip'],
    [['gzip', 'gzip'], twice, 'gzip, gzip'],
    ['br, GZIP', gzipSync(brotliCompressSync(fixture)), 'br, GZIP'],
    ['identity', fixture, 'identity'],
    ['identity, gzip', gzipSync(fixture), 'identity, gzip'],
  ]
  for (const [header, bytes, told] of cases) {
    const headers: OutgoingHttpHeaders = { ['Content-Encoding' as string]: header }
    upstream.queue({ headers, body: bytes, split: [30] })
    const reply = await call(`${url}/v1/chat/completions`, { headers: { 'accept-encoding': 'gzip, br' }, body }).reply
    t.equal(reply.headers['content-encoding'], told)
    t.equal((await read(reply)).bytes.equals(bytes), true)
    const seen = { outcome: 'ok', usage: { tokens: leaves, missing: null }, upstreamReply: { bytes: fixture.length } }
    t.match(await settled.next(), seen, told)
  }
  for (const [header, bytes] of [['gzip, gzip, gzip', gzipSync(twice)], ['gzip, rot13', twice], ['gzip, gzip', gzipSync(fixture)], [
    'gzip, gzip', gzipSync(Buffer.from('no')),
  ]] as const) {
    upstream.queue({ headers: { 'content-encoding': header }, body: bytes })
    const reply = await call(`${url}/v1/chat/completions`, { body }).reply
    t.equal((await read(reply)).bytes.equals(bytes), true, 'what cannot be read is passed on')
    t.match(await settled.next(), { usage: { tokens: null, missing: 'parse_error' } }, header)
  }
})

t.test('a reply under a transfer coding that nobody offered to unpack is refused', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const url = await listen(app)
  for (const [coding, status] of [
    ['gzip, chunked', 200], ['GZip,Chunked', 200], ['deflate, chunked', 200], ['gzip, chunked', 422],
  ] as const) {
    upstream.respond = ({ raw }) => {
      const bytes = gzipSync(fixture)
      raw.res.socket?.write(
        `HTTP/1.1 ${status} Coded\r\ncontent-type: application/json\r\ntransfer-encoding: ${coding}\r\n\r\n${bytes.length.toString(16)}\r\n`
      )
      raw.res.socket?.write(Buffer.concat([bytes, Buffer.from('\r\n0\r\n\r\n')]))
      return { stallAt: 'headers' }
    }
    const reply = await call(`${url}/v1/chat/completions`, { body }).reply
    t.equal(reply.statusCode, 502)
    t.match(JSON.parse((await read(reply)).bytes.toString()), { error: { code: 'upstream_invalid' } })
    t.match(await settled.next(), { outcome: 'upstream_error', errorCode: 'upstream_invalid' })
  }
  upstream.respond = ({ raw }) => {
    raw.res.socket?.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nTransfer-Encoding: ' +
      `Chunked\r\n\r\n${fixture.length.toString(16)}\r\n${fixture.toString()}\r\n0\r\n\r\n`)
    return { stallAt: 'headers' }
  }
  t.equal((await call(`${url}/v1/chat/completions`, { body }).reply).statusCode, 200)
})

t.test('HEAD is GET without a body, and as guarded', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const url = await listen(app)
  for (const path of ['/v1/models', '/models', '/v1/responses/resp_1', '/v1/models/m-1']) {
    const head = await call(url + path, { method: 'HEAD' }).reply
    t.equal(head.statusCode, 200, path)
    t.equal((await read(head)).bytes.length, 0)
    t.equal((await upstream.requests.next()).method, 'GET')
    t.match(await settled.next(), { outcome: 'ok', status: 200 })
    const get = await call(url + path, { method: 'GET' }).reply
    const { bytes } = await read(get)
    t.equal(Number(head.headers['content-length'] ?? bytes.length), bytes.length)
    t.equal(head.headers['content-type'], get.headers['content-type'])
    await upstream.requests.next()
    await settled.next()
    const stranger = await call(url + path, { method: 'HEAD', headers: { authorization: 'Bearer sk-nobody' } }).reply
    t.equal(stranger.statusCode, 401)
    t.match(await settled.next(), { outcome: 'auth_error' })
  }
  upstream.queue({ body: Buffer.alloc(3_000_000, 'x'), split: [1_000, 1_000_000] })
  const large = await call(`${url}/v1/models`, { method: 'HEAD' }).reply
  t.strictSame([large.statusCode, (await read(large)).bytes.length], [200, 0])
  await settled.next()
  const none = await call(`${url}/v1/chat/completions`, { method: 'HEAD' }).reply
  t.strictSame([none.statusCode, none.headers.allow], [405, 'POST'])
})

t.test('a 304 that tells the length of what it does not bring is whole', async (t) => {
  const upstream = await startUpstream(t)
  const pools = { pool: { members: ['main'] } }
  for (const options of [{}, { pools, groups: { all: { protocols: everyProtocol, upstream: 'pool' } } }]) {
    const { app, settled } = await startGateway(t, upstream.url, options)
    const url = await listen(app)
    // A script of its own writes a body too.
    upstream.respond = ({ raw: { res } }) => {
      res.writeHead(304, { etag: '"a"', 'content-encoding': 'br', 'content-length': 700 }).end()
      return { stallAt: 'headers' }
    }
    for (let i = 0; i < 2; i++) {
      const reply = await call(`${url}/v1/models`, { method: 'GET', headers: { 'if-none-match': '"a"' } }).reply
      t.strictSame([reply.statusCode, reply.headers.etag, (await read(reply)).cut], [304, '"a"', false])
      t.match(await settled.next(), { outcome: 'ok', status: 304, abortedBy: null })
    }
    t.match(gatewayOf(app).upstreamsStatus().upstreams, [{ state: 'up', active: 0 }])
  }
})

t.test('the model list with a key of the messages API alone is told of what that API lacks', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const alone = await app.inject({ url: '/v1/models', headers: { 'x-api-key': secret } })
  t.strictSame([alone.statusCode, alone.json().error.type], [400, 'invalid_request_error'])
  t.match(alone.json().error.message, /anthropic-version is required/)
  const wrong = await app.inject({ url: '/v1/models', headers: { 'x-api-key': 'sk-wrong', 'anthropic-version': '2023-06-01' } })
  t.match([wrong.statusCode, wrong.json().error], [401, { type: 'authentication_error', message: /^Incorrect API key provided/ }])
  const other = await app.inject({ url: '/v1/models', headers: { 'x-api-key': 'x', authorization: `Bearer ${secret}` } })
  t.equal(other.statusCode, 200)
  const openai = await app.inject({ url: '/v1/models', headers: { authorization: 'Bearer sk-wrong' } })
  t.match([openai.statusCode, openai.json().error], [
    401, { type: 'authentication_error', code: 'invalid_api_key', message: /^Incorrect API key provided/ },
  ])
})

t.test('an unknown action is a 404 that says so, and another method of a model is none', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const headers = { 'x-goog-api-key': secret, 'content-type': 'application/json' }
  for (const path of ['/v1beta/models/m:answer', '/v1beta/models/a%2Fb%3Aanswer', '/models/m:GenerateContent']) {
    const reply = await app.inject({ method: 'POST', url: path, headers, payload: '{}' })
    t.equal(reply.statusCode, 404, path)
    t.match(reply.json(), { error: { status: 'NOT_FOUND', message: /Unknown action .* generateContent, / } })
  }
  for (const [method, path] of [['POST', '/v1beta/models/m'], ['PUT', '/v1beta/models/m:answer']] as const) {
    const reply = await app.inject({ method, url: path, headers, payload: '{}' })
    t.strictSame([reply.statusCode, reply.headers.allow], [405, 'GET, HEAD'], `${method} ${path}`)
  }
})

t.test('a body that is coded as identity is plain, and any other coding is refused', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const post = async (coding: string): Promise<number> => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'content-encoding': coding }
    return (await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: body })).statusCode
  }
  t.strictSame([await post('identity'), await post(' Identity'), await post('gzip'), await post('identity, gzip')], [200, 200, 415, 415])
})
