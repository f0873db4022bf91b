/** Bodies that are checked beside the loop: what comes of them is the same, and nobody waits for them. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { ModelCall, modelCallOf } from '../../plugins/core/call/model-call.js'
import { endpoints } from '../../plugins/protocols/index.js'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { memoryBalances } from '../../plugins/state/index.js'
import { Checker } from '../../plugins/validation/checker.js'
import { readOptions } from '../../plugins/validation/options.js'
import { everyProtocol, gatewayOptions, secret, watchSettled } from '../helpers/gateway.js'
import { sha256, startUpstream, type Upstream } from '../helpers/upstream.js'

const chat = '/v1/chat/completions'
const authorization = `Bearer ${secret}`
const json = { authorization, 'content-type': 'application/json' }
const padding = ' '.repeat(300_000)
const messages = '"messages":[{"role":"user","content":"x"}]'

interface Rig {
  readonly app: FastifyInstance
  readonly url: string
  readonly upstream: Upstream
}

async function start (t: Test, server: object = {}): Promise<Rig> {
  const upstream = await startUpstream(t)
  const app: FastifyInstance = Object(Fastify(server))
  const groups = { all: { protocols: everyProtocol, limits: { balance: 500_000 } } }
  await app.register(llmGateway, gatewayOptions(upstream.url, { groups, limits: { balances: memoryBalances() } }))
  t.teardown(() => app.close())
  app.get('/health', async () => 'ok')
  return { app, url: await app.listen({ host: '127.0.0.1', port: 0 }), upstream }
}

async function post (
  url: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = json
): Promise<{ status: number, body: unknown }> {
  const reply = await fetch(url + chat, { method: 'POST', headers, body })
  return { status: reply.status, body: JSON.parse(await reply.text()) }
}

const many = (count: number, unit: (index: number) => string): string => Array.from({ length: count }, (_, index) => unit(index)).join(',')

t.test('the name of a model is replaced where the thread has seen it', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  const upstreams = { main: { url: upstream.url, models: { ours: 'theirs' } } }
  await app.register(llmGateway, gatewayOptions(upstream.url, { upstreams }))
  t.teardown(() => app.close())
  const seen: unknown[] = []
  app.addHook('onSend', async (request) => { seen.push(modelCallOf(request)?.body.modelPlaces?.length) })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const body = (model: string, asked = ''): string => `{${asked}"stream":true,${messages},"x":"${padding}ö","model":"${model}","n":1}`
  await (await fetch(url + chat, { method: 'POST', headers: json, body: body('ours') })).text()
  t.equal((await upstream.requests.next()).sha256, sha256(body('theirs', '"stream_options":{"include_usage":true},')))
  t.same(seen, [1])
})

t.test('through routes of this package', async (t) => {
  const { app, url, upstream } = await start(t)
  const settled = watchSettled(app)

  await t.test('bytes are forwarded as received, and what they say is known', async (t) => {
    const body = `{"model":"large","x":1e400,${messages}} ${padding}`
    t.equal((await post(url, body)).status, 200)
    t.equal((await upstream.requests.next()).sha256, sha256(body))
    t.match(await settled.next(), { model: 'large', stream: false, outcome: 'ok', errorCode: null })
  })

  await t.test('the bound of values is told before anything is built', async (t) => {
    const body = `{"model":"m",${messages},"a":[${many(1_000_000, () => '{}')}]}`
    t.match(await post(url, body), {
      status: 400, body: { error: { code: 'invalid_json', message: /it holds more than 1000000 values\.$/ } },
    })
    t.match(await settled.next(), { outcome: 'client_error' })
  })

  const refused: Array<[what: string, body: string, error: object]> = [
    ['a key that comes late and twice', `{"model":"m",${messages},${many(20_000, (index) => `"k${index}":0`)},"model":"n"}`, {
      param: 'model', message: /twice/,
    }],
    ['deep nesting', `{"model":"m",${messages},"a":${'['.repeat(300_000)}`, { message: /deeper than 256 levels/ }],
    ['a wrong field at the end', `{"model":"m","messages":[${many(10_000, () => '{"role":"user","content":"x"}')},{"role":5}]}`, {
      param: 'messages[10000].role',
    }],
    ['no JSON', `{"model":"m",${messages}${padding}`, { code: 'invalid_json' }],
    ['a long key that comes twice', `{"${padding}":1,"${padding}":2}`, { message: /^.{1,400}$/ }],
    ['another protocol\'s body', `{"model":"m","input":"${padding}"}`, { message: /This looks like a body for POST \/v1\/responses\.$/ }],
  ]
  for (const [what, body, error] of refused) {
    await t.test(what, async (t) => {
      t.match(await post(url, body), { status: 400, body: { error } })
      await settled.next()
    })
  }

  await t.test('a body of few bytes and many values is checked there, too', async (t) => {
    const body = `{"model":"m",${messages},${many(20_000, (index) => `"${index}":0`)}}`
    t.ok(body.length < 256 * 1024)
    t.equal((await post(url, body)).status, 200)
    t.equal((await upstream.requests.next()).sha256, sha256(body))
    await settled.next()
  })

  await t.test('so is a form of few bytes and many parts', async (t) => {
    const forms: string[] = []
    const part = (name: string, value: string): string => `--b\r\nContent-Disposition: form-data; name=${name}\r\n\r\n${value}\r\n`
    for (const count of [2_000, 200_000]) forms.push(`${part('a', '').repeat(count)}${part('model', 'm')}--b--\r\n`)
    const headers = { authorization, 'content-type': 'multipart/form-data; boundary=b' }
    const [passed, refused] = await Promise.all(forms.map(async (body) => {
      const reply = await fetch(`${url}/v1/images/edits`, { method: 'POST', headers, body })
      return { status: reply.status, body: await reply.text() }
    }))
    t.match([passed, refused], [{ status: 200 }, { status: 400, body: /more than 125000 parts/ }])
    t.equal((await upstream.requests.next()).sha256, sha256(String(forms[0])))
    await Promise.all([settled.next(), settled.next()])
  })

  await t.test('what tells its cost is found behind everything else', async (t) => {
    const body = (n: number): string => `{"model":"m",${messages},${many(5_000, (index) => `"k${index}":"x"`)},"n":${n}}${padding}`
    t.match(await post(url, body(100)), { status: 403, body: { error: { code: 'insufficient_quota' } } })
    await settled.next()
    t.equal((await post(url, body(1))).status, 200)
    await upstream.requests.next()
    await settled.next()
  })

  await t.test('usage is asked for in a stream', async (t) => {
    upstream.queue({ fixture: 'chat_completions.include_usage.sse' })
    const body = `{"model":"m","stream":true,"stream_options":{"include_usage":false,"x":1},${messages}}${padding}`
    const reply = await fetch(url + chat, { method: 'POST', headers: json, body })
    await reply.text()
    t.equal((await upstream.requests.next()).body.toString(), body.replace('false', 'true'))
    t.match(await settled.next(), { stream: true, usage: { tokens: { input: Number } } })
  })

  await t.test('a form', async (t) => {
    const part = (name: string, value: string): string => `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    const body = `${part('model', 'painter')}${part('image', 'x'.repeat(400_000))}--b--`
    const headers = { authorization, 'content-type': 'multipart/form-data; boundary=b' }
    const reply = await fetch(`${url}/v1/images/edits`, { method: 'POST', headers, body })
    t.equal(reply.status, 200)
    t.equal((await upstream.requests.next()).sha256, sha256(body))
    t.match(await settled.next(), { model: 'painter' })
  })

  await t.test('a caller that leaves while its body is checked', async (t) => {
    const leave = new AbortController()
    const body = Buffer.from(`{"model":"m",${messages},${many(300_000, (index) => `"k${index}":0`)}}`)
    const left = fetch(url + chat, { method: 'POST', headers: json, body, signal: leave.signal }).catch(() => {})
    setTimeout(() => leave.abort(), 100)
    await left
    t.match(await settled.next(), { outcome: 'client_abort' })
    t.equal((await post(url, `{"model":"next",${messages}}${padding}`)).status, 200)
    t.match((await upstream.requests.next()).json, { model: 'next' }, 'it is not sent')
  })

  await t.test('chunks without a declared length, and a body in one piece that is not ours', async (t) => {
    const body = `{"model":"m",${messages}}${padding}`
    const bytes = Buffer.from(body)
    async function * pieces (): AsyncGenerator<Buffer> {
      for (let at = 0; at < bytes.length; at += 50_000) yield bytes.subarray(at, at + 50_000)
    }
    const reply = await fetch(url + chat, { method: 'POST', headers: json, body: Readable.toWeb(Readable.from(pieces())), duplex: 'half' })
    t.equal(reply.status, 200)
    t.equal((await upstream.requests.next()).sha256, sha256(body))
    for (const time of ['once', 'twice']) {
      t.equal((await app.inject({ method: 'POST', url: chat, headers: json, payload: bytes })).statusCode, 200, time)
    }
    t.equal(bytes.toString(), body)
  })
})

t.test('through mounts of a host, with the context of its hooks', async (t) => {
  const upstream = await startUpstream(t)
  const store = new AsyncLocalStorage<string>()
  const app = Fastify({ bodyLimit: 64 * 1024 * 1024 })
  t.teardown(() => app.close())
  app.addHook('onRequest', (_request, _reply, done) => store.run('of this request', done))
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), routes: false })
  const contexts: unknown[] = []
  app.addHook('preHandler', async (request) => { contexts.push(store.getStore(), modelCallOf(request)?.model) })
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', ...proxyOptions() })
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1beta', rewritePrefix: '/v1beta', proxyPayloads: false })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const body = `{"model":"m",${messages}}${padding}`
  t.equal((await post(url, body)).status, 200)
  t.equal((await upstream.requests.next()).sha256, sha256(body))
  const gemini = `{"contents":[{"parts":[{"text":"x"}]}]}${padding}`
  const reply = await fetch(`${url}/v1beta/models/g:generateContent`, {
    method: 'POST', headers: { 'x-goog-api-key': secret, 'content-type': 'application/json' }, body: gemini,
  })
  t.equal(reply.status, 200)
  t.equal((await upstream.requests.next()).sha256, sha256(gemini), 'a mount that parses')
  t.strictSame(contexts, ['of this request', 'm', 'of this request', 'g'])
  t.match(await post(url, `{"model":"m"}${padding}`), { status: 400, body: { error: { param: 'messages' } } })
})

t.test('over HTTP/2', async (t) => {
  const { url, upstream } = await start(t, { http2: true })
  const client = connect(url)
  t.teardown(() => client.destroy())
  for (const body of [`{"model":"m",${messages}}${padding}`, `{"model":"m"}${padding}`]) {
    const stream = client.request({ ':method': 'POST', ':path': chat, ...json })
    stream.end(body)
    const [headers] = await once(stream, 'response')
    await text(stream)
    t.equal(headers[':status'], body.includes('messages') ? 200 : 400)
  }
  t.equal((await upstream.requests.next()).sha256, sha256(`{"model":"m",${messages}}${padding}`))
})

function callTo (id: string): ModelCall {
  const endpoint = endpoints.find((candidate) => candidate.id === id)
  if (endpoint === undefined) throw new Error(`no endpoint ${id}`)
  return new ModelCall({ kind: 'endpoint', endpoint, url: '/', mountLength: 0, model: null, keys: null, repair: null })
}

t.test('a body whose thread dies is refused natively, and the next one is checked', async (t) => {
  const troubles: unknown[] = []
  const checker = new Checker(
    { ...readOptions({}), data: { schemas: 'no JSON', maxDepth: 256, maxValues: 1 } }, (error) => troubles.push(error)
  )
  t.teardown(() => checker.threads.close())
  const call = callTo('chat_completions')
  const check = async (): Promise<unknown> => await checker.check(call, json, Buffer.from(`{"model":"m",${messages}}${padding}`))
  t.match(await check(), { keyword: 'unchecked', error: { code: 'body_unchecked', statusCode: 503, retry: false } })
  t.match(await check(), { keyword: 'unchecked' })
  t.match(troubles, [{ message: /JSON/ }, { message: /JSON/ }])
  t.equal(call.body.bytes, null)
})

t.test('a body that nobody waits for any more is not checked', async (t) => {
  const checker = new Checker(readOptions({}), (error) => t.fail(String(error)))
  t.teardown(() => checker.threads.close())
  const call = callTo('chat_completions')
  call.settled = true
  t.match(await checker.check(call, json, Buffer.from(padding)), { error: { code: 'request_aborted' } })
})

t.test('schemas and bounds of a host hold for large bodies, too', async (t) => {
  const file = `${t.testdir({ 'team.json': '{"type":"object","properties":{"team":{}},"required":["team"]}' })}/team.json`
  const checker = new Checker(readOptions({ maxValues: 20, schemas: { chat_completions: file } }), (error) => t.fail(String(error)))
  t.teardown(() => checker.threads.close())
  const check = async (body: string): Promise<unknown> => await checker.check(callTo('chat_completions'), json, Buffer.from(body))
  t.match(await check(`{}${padding}`), { error: { param: 'team' } })
  t.equal(await check(`{"team":1}${padding}`), null)
  t.match(await check(`{"team":[${'1,'.repeat(30)}1]}${padding}`), { keyword: 'values', error: { message: /more than 20 values/ } })
  t.match(
    checker.check(callTo('chat_completions'), json, Buffer.from(`{"team":[${'1,'.repeat(30)}1]}`)), { keyword: 'values' }, 'and small ones'
  )
})
