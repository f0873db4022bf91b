import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import authPlugin from '../../plugins/auth/index.js'
import forwardPlugin, { proxyOptions } from '../../plugins/forward/index.js'
import { joinGateway } from '../../plugins/request.js'
import validation, { type ValidationOptions } from '../../plugins/validation/index.js'
import { sha256, startUpstream, type Upstream } from '../helpers/upstream.js'

interface Rig {
  app: FastifyInstance
  upstream: Upstream
  /** Labels that were counted, as `protocol keyword`. */
  counted: string[]
}

type Mount = (app: FastifyInstance, url: string) => Promise<void>

const groups = { all: { protocols: ['chat_completions', 'responses', 'images', 'embeddings', 'messages', 'generate_content'] } }
const keys = [{ id: 'k', group: 'all', secret: 'sk-all' }]

/** The three ways in which a route can stand between the caller and the upstream, and the host's parsed variant. */
const mounts: Record<string, Mount> = {
  'own routes': async (app, url) => {
    await app.register(authPlugin, { groups, keys })
    await app.register(forwardPlugin, { upstreams: { main: { url, credential: 'secret' } } })
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

async function build (t: Test, mount: Mount, options: ValidationOptions = {}): Promise<Rig> {
  const upstream = await startUpstream(t)
  const app = Fastify({ bodyLimit: 64 * 1024 * 1024 })
  t.teardown(() => app.close())
  const counted: string[] = []
  const gateway = joinGateway(app)
  gateway.recorder = { ...gateway.recorder, validationFailed: (protocol, keyword) => counted.push(`${protocol} ${keyword}`) }
  await app.register(validation, options)
  await mount(app, upstream.url)
  await app.ready()
  return { app, upstream, counted }
}

const headers = { authorization: 'Bearer sk-all', 'content-type': 'application/json' }
const chat = '/v1/chat/completions'

const bodies: Record<string, string> = {
  'big integers, 1.0 and odd spacing': '{ "model" : "m",\n\t"seed":12345678901234567890, "temperature": 1.0, "x": 1e400, "messages":[ {"role":"user","content":"h\\u00e9 \\ud83d\\ude00"} ] }  ',
  'fields that nobody knows yet': '{"brand_new":{"a":[1,{"b":null}]},"model":"m","messages":[{"role":"user","content":[{"type":"new_part","x":1}]}],"__proto__x":1}',
  'an image of 3 MB': JSON.stringify({ model: 'm', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,' + 'iVBORw0KGgo'.repeat(290_000) } }] }] }),
  'text in many scripts': JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Grüße, 世界 🌍 '.repeat(1000) }] }),
}

for (const [name, mount] of Object.entries(mounts)) {
  t.test(`through ${name}`, async (t) => {
    const { app, upstream, counted } = await build(t, mount)

    for (const [what, body] of Object.entries(bodies)) {
      await t.test(`bytes are forwarded as received: ${what}`, async (t) => {
        const reply = await app.inject({ method: 'POST', url: chat, headers, payload: body })
        t.equal(reply.statusCode, 200, reply.body)
        const seen = await upstream.requests.next()
        t.equal(seen.sha256, sha256(body))
        t.equal(seen.headers['content-type'], 'application/json')
        t.equal(seen.headers['content-length'], String(Buffer.byteLength(body)))
      })
    }

    await t.test('a wrong body is refused and goes nowhere', async (t) => {
      const before = upstream.seen.length
      const reply = await app.inject({ method: 'POST', url: chat, headers, payload: '{"model":"m"}' })
      t.equal(reply.statusCode, 400)
      t.match(reply.json(), { error: { message: 'messages is required.', type: 'invalid_request_error', param: 'messages', code: 'invalid_body' } })
      t.equal(reply.headers['x-should-retry'], 'false')
      t.equal(upstream.seen.length, before)
      t.strictSame(counted, ['chat_completions required'])
    })
  })
}
