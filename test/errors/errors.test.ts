import Fastify, { type FastifyInstance, type FastifyReply, type FastifyServerOptions } from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { errors } from '../../plugins/errors/index.js'
import { fromForeign, fromTransport } from '../../plugins/core/errors/foreign.js'
import { gatewayError } from '../../plugins/core/errors/gateway-error.js'
import { nativeErrorHandler } from '../../plugins/forward/error-handler.js'
import { checkChoice, checkOptions } from '../../plugins/core/config/options.js'
import { errorHeaders, refuse } from '../../plugins/core/errors/refuse.js'
import { errorTable, type ErrorCode } from '../../plugins/core/errors/table.js'
import { families } from '../../plugins/protocols/index.js'
import llmGateway, { usage } from '../../plugins/index.js'
import { gatewayOptions, listen, secret, watchSettled } from '../helpers/gateway.js'
import { startHost } from '../helpers/host.js'
import { startUpstream } from '../helpers/upstream.js'
import { Wire } from '../helpers/wire.js'

const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'

async function build (t: { teardown: (close: () => unknown) => unknown }, add: (app: FastifyInstance) => void): Promise<FastifyInstance> {
  const app = Fastify({ bodyLimit: 100 })
  t.teardown(() => app.close())
  await app.register(errors)
  add(app)
  return app
}

t.test('every row says its status, whether to try again, and when', async (t) => {
  for (const code of Object.keys(errorTable) as ErrorCode[]) {
    const error = gatewayError(code, { expected: 'x' }, { retryAfterMs: 1_200 })
    const told = errorHeaders(error, 'id')
    t.match(told, { 'x-request-id': 'id', 'request-id': 'id', 'content-type': 'application/json; charset=utf-8' })
    t.equal(told['cache-control'], 'no-store', 'it is its caller\'s alone')
    t.equal(told['x-should-retry'], errorTable[code].retry ? undefined : 'false', code)
    t.equal(told['retry-after'], [429, 503].includes(error.statusCode) ? '2' : undefined, code)
    t.notMatch(error.message, /\{expected\}/)
  }
  t.equal(errorHeaders(gatewayError('overloaded'), 'id')['retry-after'], '1')
  t.equal(
    gatewayError('unknown_url').message,
    'Unknown request URL: method path. Use the base URL baseUrl with your client; if it does, this endpoint is not served here.',
    'a value that is missing leaves its name'
  )
})

t.test('two failures share nothing', async (t) => {
  const first = gatewayError('insufficient_quota', {}, { status: 402, param: 'a', headers: { a: '1' } })
  const second = gatewayError('insufficient_quota')
  t.match([first.statusCode, first.param, first.headers], [402, 'a', { a: '1' }])
  t.match([second.statusCode, second.param, second.headers], [403, null, {}])
  t.strictSame(second.headers, {})
})

t.test('what Fastify and a host\'s plugins refuse keeps its status and speaks the caller\'s protocol', async (t) => {
  const app = await build(t, (app) => {
    app.post('/v1/messages', async (request, reply) => {
      const status = Number(request.headers['x-status'])
      if (status === 429) reply.header('retry-after', '60')
      throw Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:443'), {
        statusCode: status, ...(request.headers['x-code'] !== undefined && { code: request.headers['x-code'] }),
      })
    })
  })
  const rows: [status: number, code: string | undefined, told: number, type: string][] = [
    [
      400, undefined, 400, 'invalid_request_error',
    ], [401, undefined, 401, 'authentication_error'], [403, undefined, 403, 'permission_error'],
    [
      404, undefined, 404, 'not_found_error',
    ], [405, undefined, 405, 'invalid_request_error'], [409, undefined, 409, 'invalid_request_error'],
    [413, undefined, 413, 'request_too_large'], [415, undefined, 415, 'invalid_request_error'], [429, undefined, 429, 'rate_limit_error'],
    [500, undefined, 500, 'api_error'], [501, undefined, 501, 'api_error'], [502, undefined, 502, 'api_error'],
    [503, undefined, 503, 'overloaded_error'],
    [504, undefined, 504, 'timeout_error'], [503, 'FST_ERR_HANDLER_TIMEOUT', 504, 'timeout_error'],
    [500, 'UND_ERR_SOCKET', 502, 'api_error'],
    [500, 'FST_REPLY_FROM_INTERNAL_SERVER_ERROR', 502, 'api_error'], [500, 'UND_ERR_CLOSED', 503, 'overloaded_error'],
  ]
  for (const [status, code, told, type] of rows) {
    const reply = await app.inject({
      method: 'POST', url: '/v1/messages', headers: { 'x-status': String(status), ...(code !== undefined && { 'x-code': code }) },
    })
    t.equal(reply.statusCode, told, `${status} ${code}`)
    t.match(reply.json(), { type: 'error', error: { type }, request_id: reply.headers['x-request-id'] }, `${status} ${code}`)
    t.equal(reply.headers['content-length'], String(reply.rawPayload.length))
    t.notMatch(reply.body, /10\.0\.0\.7|ECONN|stack/)
    if (status === 429) t.equal(reply.headers['retry-after'], '60', 'the host knows better')
  }
})

t.test('Fastify\'s own 404, 413, 415 and parse errors are native, a host\'s own words are its own', async (t) => {
  const app = await build(t, (app) => {
    app.post('/v1/chat/completions', async (request) => request.body)
    app.post('/v1/embeddings', async (request, reply) => {
      const words: Record<string, string> = {
        own: '{"message":"ours"}',
        odd: '{"message":',
        other: '{"statusCode":400,"error":"x","message":"y"}',
        late: '{"statusCode":418,"error":"x","message":"y"}',
        nameless: '{"statusCode":418,"message":"y"}',
      }
      return reply.code(418).type('application/json').send(words[String(request.headers['x-words'])])
    })
  })
  const ask = async (url: string, given: Record<string, string>, payload: string): Promise<[number, unknown]> => {
    const reply = await app.inject({ method: 'POST', url, headers: { 'content-type': 'application/json', ...given }, payload })
    return [reply.statusCode, reply.json().error?.code]
  }
  t.equal((await app.inject({ method: 'POST', url: '/v1/embeddings' })).statusCode, 418, 'a reply without a body')
  t.strictSame(await ask('/v1/responses', {}, '{}'), [404, 'unknown_url'])
  t.strictSame(await ask('/v1/chat/completions', {}, `"${'x'.repeat(200)}"`), [413, 'body_too_large'])
  t.strictSame(await ask('/v1/chat/completions', { 'content-type': 'text/x' }, 'x'), [415, 'unsupported_media_type'])
  t.strictSame(await ask('/v1/chat/completions', {}, '{'), [400, 'bad_request'])
  t.strictSame(await ask('/v1/chat/completions', {}, '{"__proto__":1}'), [400, 'bad_request'])
  for (const words of ['own', 'odd', 'other', 'nameless']) {
    const reply = await app.inject({ method: 'POST', url: '/v1/embeddings', headers: { 'x-words': words } })
    t.match([reply.statusCode, reply.body, reply.headers['x-request-id']], [418, /ours|"message"/, /./], words)
    t.notMatch(reply.body, /bad_request/, words)
  }
  t.match((await app.inject({ method: 'POST', url: '/v1/embeddings', headers: { 'x-words': 'late' } })).json(), {
    error: { code: 'bad_request' },
  })
  const host = await app.inject('/else')
  t.strictSame([host.statusCode, Object.keys(host.json()), host.headers['x-request-id']], [
    404, ['message', 'error', 'statusCode'], undefined,
  ])
})

t.test('an untouched mount whose upstream is gone answers 502 without its address', async (t) => {
  const app = await startHost(t, 'http://127.0.0.1:1')
  const reply = await fetch(`${await listen(app)}/v1/chat/completions`, { method: 'POST', headers, body: '{}' })
  const text = await reply.text()
  t.match([reply.status, JSON.parse(text)], [502, { error: { code: 'upstream_unreachable' } }])
  t.notMatch(text, /127\.0\.0\.1|ECONN/)
  const upstream = await startUpstream(t)
  const other = await startHost(t, upstream.url)
  const body = '{"statusCode":400,"error":"Bad Request","message":"the provider\'s own"}'
  upstream.queue({ status: 400, body: Buffer.from(body), headers: { 'x-request-id': 'up' } })
  const passed = await other.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: '{}' })
  t.match([passed.statusCode, passed.body, passed.headers['x-request-id'], passed.headers['request-id']], [400, body, 'up', 'up'])
})

const ask = { method: 'POST', url: '/v1/chat/completions', headers, payload: chat } as const

t.test('a hook of the host\'s that fails once an upstream has replied is told in the caller\'s protocol, and not packed', async (t) => {
  const upstream = await startUpstream(t)
  const own = Fastify()
  t.teardown(() => own.close())
  await own.register(llmGateway, gatewayOptions(upstream.url))
  const before = async (app: FastifyInstance): Promise<void> => { await app.register(usage) }
  const apps = {
    own, adapted: await startHost(t, upstream.url, { before, adapted: true }), untouched: await startHost(t, upstream.url, { before }),
  }
  for (const [where, app] of Object.entries(apps)) {
    const settled = watchSettled(app)
    let isBroken = true
    app.addHook('onSend', async (_request, _reply, payload) => {
      if (!isBroken) return payload
      isBroken = false
      throw Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:443'), { statusCode: 503 })
    })
    upstream.queue({ fixture: 'chat_completions.json', encoding: 'gzip' })
    const { statusCode, headers: { 'content-encoding': coding }, body } = await app.inject(ask)
    t.match([statusCode, coding, JSON.parse(body)], [503, undefined, { error: { code: 'overloaded' } }], where)
    t.match(await settled.next(), { outcome: 'gateway_error', errorCode: 'overloaded' }, where)
  }
})

t.test('an untouched mount whose upstream breaks off between its headers and its body answers 502', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startHost(t, upstream.url, { before: async (app) => { await app.register(usage) } })
  const settled = watchSettled(app)
  for (const status of [200, 429]) {
    upstream.queue({ status, body: { ok: true }, encoding: 'gzip', cutAt: 0 })
    const { statusCode, headers: { 'content-encoding': coding }, body } = await app.inject(ask)
    t.match([statusCode, coding, JSON.parse(body)], [502, undefined, { error: { code: 'upstream_reset' } }], String(status))
    t.match(await settled.next(), { outcome: 'upstream_error' })
  }
})

t.test('a hook of the host\'s that comes before the gateway\'s is heard as it is, and its errors speak the caller\'s protocol', async (
  t
) => {
  const upstream = await startUpstream(t)
  const settled: unknown[] = []
  const hooked = (app: FastifyInstance): void => {
    app.addHook('onRequest', async ({ headers }, reply) => {
      if (headers['x-early'] === 'words') return await reply.code(headers['x-code'] === '200' ? 200 : 429).send({ host: 1 })
      if (headers['x-early'] === 'error') {
        reply.header('retry-after', '60')
        throw Object.assign(new Error('from 10.0.0.7'), { statusCode: 429 })
      }
    })
  }
  for (const [where, mountsFirst, adapted, own] of [
    ['own routes', false, false, true], ['a mount', false, true, false], ['an older mount', true, false, false],
  ] as const) {
    const app = own ? Fastify() : await startHost(t, upstream.url, { before: hooked, mountsFirst, adapted })
    if (own) {
      t.teardown(() => app.close())
      hooked(app)
      await app.register(llmGateway, gatewayOptions(upstream.url))
    }
    settled.length = 0
    gatewayOf(app).settlement.onSettled(({ outcome, errorCode }) => settled.push([outcome, errorCode]))
    for (const [url, status] of [['/v1/chat/completions', '200'], ['/v1/chat/completions', '429'], ['/v1/x', '200']] as const) {
      const words = await app.inject({ method: 'POST', url, headers: { ...headers, 'x-early': 'words', 'x-code': status }, payload: '{}' })
      t.match([words.statusCode, words.body, words.headers['x-request-id']], [Number(status), '{"host":1}', undefined], `${where}: ${url}`)
    }
    for (const url of ['/v1/chat/completions', '/v1/v1/chat/completions']) {
      const told = await app.inject({ method: 'POST', url, headers: { ...headers, 'x-early': 'error' }, payload: '{}' })
      t.match([told.statusCode, told.json()], [429, { error: { code: 'too_many_requests' } }], `${where}: ${url}`)
      t.match(told.headers, { 'retry-after': '60', 'x-request-id': /./, 'content-length': String(told.rawPayload.length) }, where)
    }
    t.strictSame(settled, [['limited', 'too_many_requests'], ['limited', 'too_many_requests']], where)
  }
  t.equal(upstream.seen.length, 0)
})

t.test('an error handler tells whatever was thrown in the caller\'s protocol', async (t) => {
  const app = await build(t, (app) => {
    app.setErrorHandler(nativeErrorHandler)
    app.post('/v1/messages', async (request) => { throw request.headers['x-kind'] === 'text' ? 'words' : gatewayError('upstream_timeout') })
    app.post('/else', async () => { throw gatewayError('bad_request') })
  })
  t.match((await app.inject({ method: 'POST', url: '/v1/messages' })).json(), { error: { type: 'timeout_error' } })
  const text = await app.inject({ method: 'POST', url: '/v1/messages', headers: { 'x-kind': 'text' } })
  t.match([text.statusCode, text.json()], [500, { error: { type: 'api_error' } }])
  t.match((await app.inject({ method: 'POST', url: '/else' })).json(), { statusCode: 400, code: 'bad_request' })
})

t.test('a host\'s error has the status that Fastify would give it, on routes of ours as on the host\'s', async (t) => {
  const upstream = await startUpstream(t)
  const own = Fastify()
  t.teardown(() => own.close())
  await own.register(llmGateway, gatewayOptions(upstream.url))
  const mount = await startHost(t, upstream.url)
  const rows: ReadonlyArray<[code: number, error: object, status: number, told: string]> = [
    [200, { status: 403 }, 403, 'access_denied'],
    [200, { status: 403, statusCode: 429 }, 429, 'too_many_requests'],
    [403, {}, 403, 'access_denied'],
    [403, { statusCode: 429 }, 429, 'too_many_requests'],
    [201, { status: 302 }, 500, 'internal_error'],
  ]
  for (const [where, app] of Object.entries({ own, mount })) {
    let fail = (_reply: FastifyReply): void => {}
    app.addHook('onRequest', async (_, reply) => fail(reply))
    for (const [code, error, status, told] of rows) {
      fail = (reply) => {
        reply.code(code)
        throw Object.assign(new Error('not for you'), error)
      }
      const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: '{}' })
      t.match([reply.statusCode, reply.json()], [status, { error: { code: told } }], `${where}: ${code} ${JSON.stringify(error)}`)
    }
  }
  t.equal(upstream.seen.length, 0)
})

t.test('transport failures are told by kind', async (t) => {
  const rows: [error: unknown, code: ErrorCode][] = [
    [{ code: 'ECONNRESET' }, 'upstream_reset'], [{ code: 'UND_ERR_HEADERS_TIMEOUT' }, 'upstream_timeout'],
    [{ name: 'HTTPParserError' }, 'upstream_invalid'],
    [{ code: 'ENOTFOUND' }, 'upstream_unreachable'], [null, 'upstream_unreachable'], ['text', 'upstream_unreachable'],
    [{ code: 7 }, 'upstream_unreachable'],
  ]
  for (const [error, code] of rows) t.equal(fromTransport(error).code, code, String(code))
  const own = gatewayError('bad_request')
  t.equal(fromForeign(own, Object({ llm: null, method: 'GET' }), 200), own)
  t.match(fromForeign({ statusCode: 404 }, Object({ llm: null, method: 'GET' }), 200), { code: 'unknown_url', statusCode: 404 })
  t.match(fromForeign({ statusCode: 200 }, Object({ llm: null, method: 'GET' }), 200), { code: 'internal_error', statusCode: 500 })
})

/** Refuses whatever comes. */
async function refusing (t: { teardown: (close: () => unknown) => unknown }, server: FastifyServerOptions = {}): Promise<string> {
  const app = Fastify(server)
  t.teardown(() => app.close())
  app.addHook('onRequest', (_request, reply) => { refuse(reply, families.openai, gatewayError('missing_api_key')) })
  app.post('/', async () => ({}))
  app.get('/', async () => ({}))
  return await listen(app)
}

t.test('a body is read after its refusal, within bounds, and then its connection ends', async (t) => {
  const url = await refusing(t)
  const chunk = Buffer.alloc(1024 * 1024, 'x')

  for (const length of [8 * chunk.length, 20_000]) {
    const polite = new Wire(url)
    const body = Buffer.alloc(length, 'x')
    polite.send(`POST / HTTP/1.1\r\nhost: h\r\ncontent-length: ${length}\r\n\r\n`)
    polite.send(body.subarray(1))
    t.match(await polite.reply(), { status: 401, headers: { connection: 'close' } })
    polite.send('x')
    await polite.closed()
  }

  const chunked = new Wire(url)
  chunked.send('POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n')
  t.equal((await chunked.reply()).status, 401)
  chunked.send('0\r\n\r\n')
  await chunked.closed()

  const short = new Wire(url)
  short.send('POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\n\r\nx')
  t.equal((await short.reply()).status, 401)
  t.equal((await short.ask(['GET / HTTP/1.1', 'host: h'])).status, 401, 'the next request on the same connection')
  short.destroy()

  const huge = new Wire(url)
  huge.send(`POST / HTTP/1.1\r\nhost: h\r\ncontent-length: ${1024 * chunk.length}\r\n\r\n`)
  t.equal((await huge.reply()).status, 401)
  let sent = 0
  while (!huge.socket.destroyed && sent < 200) {
    await new Promise<void>((resolve) => huge.socket.write(chunk, () => resolve()))
    sent += 1
  }
  t.ok(sent < 200, `${sent} MiB were taken before the connection was cut`)

  const slow = new Wire(await refusing(t, { keepAliveTimeout: 1_000 }))
  slow.send('POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\n\r\nx')
  t.equal((await slow.reply()).status, 401)
  await slow.closed()
  t.pass('a caller that never ends its body is cut off')
})

t.test('a long body that has come whole does not cost its connection', async (t) => {
  const url = await refusing(t)
  let kept = false
  // On a machine that stands still for a moment, the reply does not wait for the rest.
  for (let tries = 0; tries < 5 && !kept; tries += 1) {
    const wire = new Wire(url)
    wire.send(`POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 300000\r\n\r\n${'x'.repeat(300_000)}`)
    const { status, headers } = await wire.reply()
    t.equal(status, 401)
    kept = headers.connection === 'keep-alive'
    if (kept) t.equal((await wire.ask(['GET / HTTP/1.1', 'host: h'])).status, 401, 'the next request on the same connection')
    wire.destroy()
  }
  t.ok(kept)
})

t.test('options are checked by what they must be', async (t) => {
  const checks = {
    'a string': ['s'],
    'a boolean': ['b'],
    'a function': ['f'],
    'an object': ['o'],
    'a whole number of at least 0': ['n'],
    'a whole number of at least 1': ['m'],
    anything: ['x'],
  }
  checkOptions('p', { s: 'a', b: true, f: () => {}, o: {}, n: 0, m: 1, x: null }, checks)
  checkOptions('p', { s: undefined }, checks)
  checkChoice('p.c', undefined, ['a'])
  checkChoice('p.c', 'a', ['a', 'b'])
  t.throws(() => checkChoice('p.c', 'z', ['a', 'b']), { message: 'option p.c must be a or b' })
  for (const wrong of [{ s: '' }, { b: 1 }, { f: 1 }, { o: [] }, { o: null }, { n: -1 }, { n: 1.5 }, { m: 0 }, { y: 1 }, { toString: 1 }]) {
    t.throws(() => checkOptions('p', wrong, checks), { code: 'LLM_GATEWAY_OPTION', message: `option p.${Object.keys(wrong)[0]}` })
  }
})

t.test('an option that the plugin does not have is refused by its name, and so is every other one', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const wrong = { message: false, hidden: true }
  await t.rejects(async () => await app.register(errors, wrong), {
    code: 'LLM_GATEWAY_OPTION', message: 'option errors.message is not known; errors.hidden is not known',
  })
  t.throws(() => checkOptions('x', { one: 1, too: 2, three: '' }, { 'a string': ['one', 'three'], anything: ['two'] }), {
    path: 'x.one', message: 'option x.one must be a string; x.too is not known; did you mean two?; x.three must be a string',
  })
})
