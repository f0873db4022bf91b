import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import type { GroupOptions } from '../../plugins/index.js'
import { auth as authPlugin } from '../../plugins/auth/index.js'
import { forward as forwardPlugin, proxyOptions } from '../../plugins/forward/index.js'
import { upstreams } from '../../plugins/upstreams/index.js'
import { gatewayOf, joinGateway } from '../../plugins/core/gateway.js'
import { modelCallOf } from '../../plugins/core/call/model-call.js'
import { validation, type ValidationOptions } from '../../plugins/validation/index.js'
import { sha256, startUpstream, type Upstream } from '../helpers/upstream.js'

interface Rig {
  app: FastifyInstance
  upstream: Upstream
  /** Labels that were counted, as `protocol keyword`. */
  counted: string[]
}

type Mount = (app: FastifyInstance, url: string) => Promise<void>

const groups: Record<string, GroupOptions> = {
  all: { protocols: ['chat_completions', 'responses', 'images', 'embeddings', 'messages', 'generate_content'] },
}
const keys = [{ id: 'k', group: 'all', secret: 'sk-all' }]

/** The three ways in which a route can stand between the caller and the upstream, and the host's parsed variant. */
const mounts: Record<string, Mount> = {
  'own routes': async (app, url) => {
    await app.register(authPlugin, { groups, keys })
    await app.register(upstreams, { upstreams: { main: { url, credential: 'secret' } } })
    await app.register(forwardPlugin)
  },
  'an adapted http-proxy mount': async (app, url) => {
    await app.register(httpProxy, { upstream: url, prefix: '/v1', rewritePrefix: '/v1', ...proxyOptions() })
    await app.register(httpProxy, { upstream: url, prefix: '/v1beta', rewritePrefix: '/v1beta', ...proxyOptions() })
  },
  'an untouched http-proxy mount': async (app, url) => {
    await app.register(httpProxy, { upstream: url, prefix: '/v1', rewritePrefix: '/v1' })
    await app.register(httpProxy, { upstream: url, prefix: '/v1beta', rewritePrefix: '/v1beta' })
  },
  'an http-proxy mount that parses': async (app, url) => {
    await app.register(httpProxy, { upstream: url, prefix: '/v1', rewritePrefix: '/v1', proxyPayloads: false })
    await app.register(httpProxy, { upstream: url, prefix: '/v1beta', rewritePrefix: '/v1beta', proxyPayloads: false })
  },
}

async function build (
  t: Test, mount: Mount, options: ValidationOptions = {}, more: (app: FastifyInstance) => void = () => {}
): Promise<Rig> {
  const upstream = await startUpstream(t)
  const app = Fastify({ bodyLimit: 64 * 1024 * 1024 })
  t.teardown(() => app.close())
  const counted: string[] = []
  const gateway = joinGateway(app)
  gateway.recorder = {
    ...gateway.recorder,
    validationFailed: (protocol, keyword) => counted.push(`${protocol} ${keyword}`),
    // As the metrics count it, which are not registered here.
    settled: ({ protocol, errorCode }) => errorCode === 'body_too_large' && counted.push(`${protocol} too_large`),
  }
  await app.register(validation, options)
  more(app)
  await mount(app, upstream.url)
  await app.ready()
  return { app, upstream, counted }
}

const headers = { authorization: 'Bearer sk-all', 'content-type': 'application/json' }
const chat = '/v1/chat/completions'

const bodies: Record<string, string> = {
  'big integers, 1.0 and odd spacing': '{ "model" : "m",\n\t"seed":12345678901234567890, "temperature": 1.0, "x": 1e400, "messages":[ ' +
    '{"role":"user","content":"h\\u00e9 \\ud83d\\ude00"} ] }  ',
  'fields that nobody knows yet':
    '{"brand_new":{"a":[1,{"b":null}]},"model":"m","messages":[{"role":"user","content":[{"type":"new_part","x":1}]}],' +
    '"__proto__x":1}',
  'an image of 3 MB': JSON.stringify({
    model: 'm',
    messages: [{
      role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,' + 'iVBORw0KGgo'.repeat(290_000) } }],
    }],
  }),
  'text in many scripts': JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Grüße, 世界 🌍 '.repeat(1000) }] }),
}

const minimal: Record<string, {
  url: string,
  valid: string,
  headers?: Record<string, string>,
  envelope: (
    code: string, status: number, message: RegExp, param: string | null
  ) => object
}> = {
  openai: {
    url: chat,
    valid: '{"model":"m","messages":[{"role":"user","content":"x"}]}',
    envelope: (code, _status, message, param) => ({ error: { message, type: 'invalid_request_error', param, code } }),
  },
  anthropic: {
    url: '/v1/messages',
    valid: '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}',
    headers: { 'anthropic-version': '2023-06-01' },
    envelope: (code, status, message) => ({
      type: 'error',
      error: { type: status === 413 ? 'request_too_large' : 'invalid_request_error', message, details: { error_code: code } },
      request_id: /^[0-9a-f-]{36}$/,
    }),
  },
  gemini: {
    url: '/v1beta/models/g:generateContent',
    valid: '{"contents":[{"parts":[{"text":"x"}]}]}',
    envelope: (code, status, message) => ({
      error: { code: status, message, status: 'INVALID_ARGUMENT', details: [{ reason: code.toUpperCase() }] },
    }),
  },
}

/** Each way in which a body is refused: what is sent, and what must come back. */
const refusals: Array<[keyword: string, code: string, status: number, message: RegExp, param: string | null, send: {
  headers?: Record<string, string>
  payload?: string | Buffer
}]> = [
  ['required', 'invalid_body', 400, / is required\.$/, 'first', { payload: '{}' }],
  ['type', 'invalid_body', 400, /^The request body must be an object\.$/, null, { payload: '[]' }],
  ['media_type', 'unsupported_media_type', 415, /must be application\/json\.$/, null, {
    headers: { 'content-type': 'text/plain' }, payload: 'x',
  }],
  ['media_type', 'unsupported_media_type', 415, /must be application\/json\.$/, null, {
    headers: { 'content-type': 'application/json; charset=utf-16' }, payload: '{}',
  }],
  ['encoding', 'unsupported_encoding', 415, /must not be compressed/, null, { headers: { 'content-encoding': 'gzip' }, payload: '{}' }],
  ['too_large', 'body_too_large', 413, /too large: the limit is 1000 bytes/, null, { payload: `"${'x'.repeat(1000)}"` }],
  ['empty', 'missing_body', 400, /has no body/, null, { payload: '' }],
  ['bom', 'invalid_json', 400, /byte order mark/, null, { payload: '\ufeff{}' }],
  ['utf8', 'invalid_json', 400, /not valid UTF-8/, null, { payload: Buffer.from('{"a":"\u00e9"}', 'latin1') }],
  ['duplicate_key', 'invalid_json', 400, /the key "model" stands in it twice/, 'model', { payload: '{"model":"a","mod\\u0065l":"b"}' }],
  ['depth', 'invalid_json', 400, /deeper than 256 levels/, null, { payload: '['.repeat(300) }],
  ['json', 'invalid_json', 400, /not valid JSON: /, null, { payload: '{"model":' }],
]

for (const [name, mount] of Object.entries(mounts)) {
  t.test(`through ${name}`, async (t) => {
    for (const [what, body] of Object.entries(bodies)) {
      await t.test(`bytes are forwarded as received: ${what}`, async (t) => {
        const { app, upstream } = await build(t, mount)
        const reply = await app.inject({ method: 'POST', url: chat, headers, payload: body })
        t.equal(reply.statusCode, 200)
        const seen = await upstream.requests.next()
        t.equal(seen.sha256, sha256(body))
        t.equal(seen.headers['content-type'], 'application/json')
        t.equal(seen.headers['content-length'], String(Buffer.byteLength(body)))
      })
    }

    await t.test('every refusal speaks the protocol of its caller and goes nowhere', async (t) => {
      const { app, upstream, counted } = await build(t, mount, { maxBodyBytes: 1000 })
      for (const [family, { url, valid, headers: more, envelope }] of Object.entries(minimal)) {
        for (const [keyword, code, status, message, param, send] of refusals) {
          const credential = family === 'gemini' ? { 'x-goog-api-key': 'sk-all' } : {}
          const sent = { ...headers, ...credential, ...more, ...send.headers }
          const reply = await app.inject({ method: 'POST', url, headers: sent, payload: send.payload ?? '' })
          t.equal(reply.statusCode, status, `${family} ${keyword}`)
          const first = family === 'openai' ? 'model' : null
          t.match(reply.json(), envelope(code, status, message, param === 'first' ? first : param), `${family} ${keyword}`)
          t.match(reply.headers, { 'content-type': /^application\/json/, 'x-should-retry': 'false', 'x-request-id': /./ })
          t.match(counted.pop(), new RegExp(` ${keyword}$`), `${family} ${keyword} is counted`)
        }
        t.equal(upstream.seen.length, 0)
        const reply = await app.inject({
          method: 'POST', url, headers: { ...headers, 'x-goog-api-key': 'sk-all', ...more }, payload: valid,
        })
        t.equal(reply.statusCode, 200, reply.body)
        await upstream.requests.next()
        upstream.seen.length = 0
      }
      t.strictSame(counted, [])
    })

    await t.test('a form is forwarded byte for byte, and a broken one is not', async (t) => {
      const { app, upstream } = await build(t, mount)
      const form = Buffer.concat([
        Buffer.from('--XyZ\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'),
        Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251)),
        Buffer.from('\r\n--XyZ\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--XyZ--\r\n'),
      ])
      const type = 'multipart/form-data; boundary="XyZ"'
      const reply = await app.inject({
        method: 'POST', url: '/v1/images/edits', headers: { ...headers, 'content-type': type }, payload: form,
      })
      // A mount that parses has no parser for forms of its own, which is the host's to say.
      if (name.endsWith('parses')) return
      t.equal(reply.statusCode, 200, reply.body)
      const seen = await upstream.requests.next()
      t.equal(seen.sha256, sha256(form))
      t.equal(seen.headers['content-type'], type)

      const cut = await app.inject({
        method: 'POST', url: '/v1/images/edits', headers: { ...headers, 'content-type': type }, payload: form.subarray(0, 1000),
      })
      t.equal(cut.statusCode, 400)
      t.match(cut.json(), { error: { code: 'invalid_body', message: /^The form cannot be read: / } })
      t.equal(upstream.seen.length, 1)
    })

    await t.test('what a later plugin sends instead goes out with its own length', async (t) => {
      const { app, upstream } = await build(t, mount, {}, (app) => {
        app.addHook('preHandler', async (request) => {
          const llm = modelCallOf(request)
          if (llm !== null) llm.body.outgoing = Buffer.from('{"rewritten":true}')
        })
      })
      const reply = await app.inject({ method: 'POST', url: chat, headers, payload: minimal['openai']?.valid ?? '' })
      t.equal(reply.statusCode, 200, reply.body)
      const seen = await upstream.requests.next()
      t.equal(seen.body.toString(), '{"rewritten":true}')
      t.equal(seen.headers['content-length'], '18')
    })

    await t.test('caps of single endpoints hold, chunked bodies too, and the connection stays usable', async (t) => {
      const { app, upstream, counted } = await build(t, mount, { maxBodyBytesByEndpoint: { chat_completions: 70_000 } })
      const url = await app.listen({ port: 0, host: '127.0.0.1' })
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      t.teardown(() => agent.destroy())
      const large = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(200_000) }] })
      for (const chunked of [false, true]) {
        const refused = await post(agent, url + chat, large, chunked)
        t.equal(refused.status, 413)
        t.match(refused.body, /"code":"body_too_large"/)
      }
      t.equal(upstream.seen.length, 0)
      t.equal((await post(agent, url + chat, minimal['openai']?.valid ?? '', true)).status, 200, 'chunked below the cap')
      t.equal((await upstream.requests.next()).headers['transfer-encoding'], undefined)
      const responses = JSON.stringify({ model: 'm', input: 'x'.repeat(200_000) })
      t.equal((await post(agent, `${url}/v1/responses`, responses, false)).status, 200, 'other endpoints keep the default')
      await counts(counted, 2)
      t.strictSame(counted, ['chat_completions too_large', 'chat_completions too_large'])
    })

    await t.test('Expect: 100-continue is answered here and travels no further', async (t) => {
      const { app, upstream } = await build(t, mount)
      await app.listen({ port: 0, host: '127.0.0.1' })
      const body = minimal['openai']?.valid ?? ''
      const socket = connect(Number(new URL(app.listeningOrigin).port), '127.0.0.1')
      t.teardown(() => socket.destroy())
      socket.write(`POST ${chat} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-all\r\nContent-Type: ` +
        `application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`)
      const read = reader(socket)
      t.match(await read(), /^HTTP\/1\.1 100 Continue\r\n\r\n/)
      socket.write(body)
      t.match(await read(), /^HTTP\/1\.1 200 /)
      t.equal((await upstream.requests.next()).headers.expect, undefined)
    })

    await t.test('a caller that leaves in the middle of its body is not a bad request', async (t) => {
      const { app, upstream, counted } = await build(t, mount)
      const outcomes: Array<string | null> = []
      gatewayOf(app).settlement.onSettled((llm) => outcomes.push(llm.outcome))
      await app.listen({ port: 0, host: '127.0.0.1' })
      const socket = connect(Number(new URL(app.listeningOrigin).port), '127.0.0.1')
      const begun = once(app.server, 'request')
      socket.write(`POST ${chat} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-all\r\nContent-Type: ` +
        'application/json\r\nContent-Length: 1000\r\n\r\n{"model":')
      await begun
      socket.destroy()
      await counts(outcomes, 1)
      t.strictSame(outcomes, ['client_abort'])
      t.strictSame(counted, [])
      t.equal(upstream.seen.length, 0)
    })
  })
}

interface Answer {
  status: number
  body: string
}

async function post (agent: Agent, url: string, body: string, chunked: boolean): Promise<Answer> {
  const length: Record<string, string> = chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(body.length) }
  const outgoing = request(url, { method: 'POST', agent, headers: { ...headers, ...length } })
  // In pieces, so that a cap is passed in the middle of a body.
  for (let at = 0; at < body.length; at += 50_000) outgoing.write(body.slice(at, at + 50_000))
  outgoing.end()
  const [incoming]: IncomingMessage[] = await once(outgoing, 'response')
  if (incoming === undefined) throw new Error('no response')
  return { status: incoming.statusCode ?? 0, body: await text(incoming) }
}

function reader (socket: Socket): () => Promise<string> {
  return async () => {
    const [chunk]: Buffer[] = await once(socket, 'data')
    return String(chunk)
  }
}

/** Waits until a list that another party fills is long enough. */
async function counts (list: readonly unknown[], length: number): Promise<void> {
  while (list.length < length) await new Promise((resolve) => setTimeout(resolve, 2))
}
