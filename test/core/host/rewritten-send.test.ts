import { once } from 'node:events'
import httpProxy from '@fastify/http-proxy'
import replyFrom from '@fastify/reply-from'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { auth, paths, proxyOptions, type LlmGatewayOptions } from '../../../plugins/index.js'
import { everyProtocol, gatewayOptions, listen, secret } from '../../helpers/gateway.js'
import { startUpstream, type Upstream } from '../../helpers/upstream.js'
import { askOnce } from '../../helpers/wire.js'

const bearer = `authorization: Bearer ${secret}`
const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const guarded: LlmGatewayOptions = {
  groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
}

async function start (t: Test, upstream: Upstream, mount: object, options: LlmGatewayOptions): Promise<Ask> {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, options)
  await app.register(httpProxy, { upstream: upstream.url, ...mount })
  const url = await listen(app)
  return async (method, path, ...headers) => {
    const body = method === 'POST' ? chat : undefined
    return (await askOnce(url, [`${method} ${path} HTTP/1.1`, 'host: h', 'content-type: application/json', ...headers], body)).status
  }
}

type Ask = (method: string, path: string, ...headers: string[]) => Promise<number>

const mounts: Record<string, object> = {
  'a parameter that a version takes the place of': { prefix: '/:any', rewritePrefix: '/v1' },
  'a parameter that is left out': { prefix: '/:any' },
  'a version put in front': { prefix: '/', rewritePrefix: '/v1/' },
  'a version deeper in the address': { prefix: '/:any', rewritePrefix: '/openai/v1' },
}

for (const [how, mount] of Object.entries(mounts)) {
  t.test(`no mount makes a model request of what nobody was asked a key for: ${how}`, async (t) => {
    const upstream = await startUpstream(t)
    const ask = await start(t, upstream, mount, guarded)
    for (const path of ['/x/chat/completions', '/x/v1/chat/completions', '/files', '/x/v1/files', '/x/files', '/x/%76%31/files']) {
      for (const method of ['GET', 'POST']) {
        for (const headers of [[], [bearer]]) await ask(method, path, ...headers)
      }
    }
    const came = upstream.seen.map(({ url }) => url).filter((url) => /\/(?:v1|%76%31)\/|completions/.test(url))
    t.strictSame(came, [])
  })
}

const socket = ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==']

for (const [how, mount] of Object.entries(mounts)) {
  t.test(`nor does it open a socket there: ${how}`, async (t) => {
    const upstream = await startUpstream(t)
    const ask = await start(t, upstream, { ...mount, websocket: true }, guarded)
    const rewritten = 'rewritePrefix' in mount ? ['/x/realtime', '/x'] : []
    const spelled = ['/x/v1\\realtime', '/x/./v1/realtime', '/x/%76%31/realtime', '/x//v1/realtime']
    for (const path of ['/x/v1/realtime', '/x/v1/realtime?model=m', ...spelled, ...rewritten]) {
      t.equal(await ask('GET', path, ...socket), 401, path)
      t.equal(await ask('GET', path, ...socket, bearer), 426, path)
    }
  })
}

t.test('nor of one in another case, which some providers do not tell apart', async (t) => {
  const anyCase = {
    ...mounts, 'a version of its own': { prefix: '/:any', rewritePrefix: '/V1' }, 'all that there is': { prefix: '/' },
  }
  for (const [how, mount] of Object.entries(anyCase)) {
    const upstream = await startUpstream(t)
    upstream.respond = () => ({ body: { ok: true } })
    const ask = await start(t, upstream, mount, guarded)
    const below = how === 'all that there is' ? [] : ['/x/V1/chat/completions', '/x/V1/files', '/x/%56%31/files', '/x/CHAT/completions']
    for (const path of ['/V1/chat/completions', '/V1/messages', '/V1Beta/models/m:generateContent', '/V%31/chat/completions', ...below]) {
      for (const headers of [[], [bearer]]) t.not(await ask('POST', path, ...headers), 200, `${how}: ${path}`)
      await ask('OPTIONS', path, 'origin: https://a.example', 'access-control-request-method: POST')
    }
    t.strictSame(upstream.seen.map(({ url }) => url), [], how)
    t.equal(await ask('GET', '/v1/models', bearer), 200, how)
  }
  const upstream = await startUpstream(t)
  const ask = await start(t, upstream, { prefix: '/', websocket: true }, guarded)
  t.strictSame([await ask('GET', '/V1/realtime', ...socket), await ask('GET', '/V1/realtime', ...socket, bearer)], [401, 426])
  upstream.respond = () => ({ body: { ok: true } })
  for (const path of ['/Page', '/Files/A', '/api/V1/users']) t.equal(await ask('GET', path), 200, 'a path of the host\'s')
})

t.test('a socket that goes to no version is the host\'s', async (t) => {
  const upstream = await startUpstream(t)
  const elsewhere = [
    { prefix: '/' }, { prefix: '/', rewritePrefix: '/app/' }, { prefix: '/:any' }, { prefix: '/:any', rewritePrefix: '/:any' },
  ]
  for (const mount of elsewhere) {
    const opened = once(upstream.server, 'upgrade')
    const ask = await start(t, upstream, { ...mount, websocket: true }, guarded)
    t.equal(await ask('GET', '/x/live', ...socket), 101, JSON.stringify(mount))
    const [request, open] = await opened
    t.match(request.url, /\/live$/)
    open.destroy()
  }
})

t.test('a handler of what has no route makes no model request of it either', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, guarded)
  await app.register(replyFrom, { base: upstream.url })
  app.setNotFoundHandler((request, reply) => reply.from(request.url.replace('/x', '/v1')))
  t.equal((await app.inject('/x/files')).statusCode, 404)
  t.equal((await app.inject({ method: 'POST', url: '/x/chat/completions', payload: {} })).statusCode, 404)
  t.equal((await app.inject('/y/files')).statusCode, 200)
  t.strictSame(upstream.seen.map(({ url }) => url), ['/y/files'])
})

t.test('what such a mount sends where no version is passes, and model requests do', async (t) => {
  const upstream = await startUpstream(t)
  const ask = await start(t, upstream, { prefix: '/:any', rewritePrefix: '/v1' }, guarded)
  t.equal(await ask('POST', '/v1/chat/completions'), 401)
  t.equal(await ask('POST', '/v1/chat/completions', bearer), 200)
  t.equal(await ask('GET', '/x/files'), 404)
  t.equal(upstream.seen.length, 1)
  upstream.respond = () => ({ body: {} })
  const plain = await start(t, upstream, { prefix: '/', rewritePrefix: '/app/' }, guarded)
  t.equal(await plain('GET', '/x/files?a=1'), 200)
  const same = await start(t, upstream, { prefix: '/' }, guarded)
  t.equal(await same('GET', '/x/v1/files'), 200)
  t.strictSame(upstream.seen.slice(1).map(({ url }) => url), ['/app/x/files?a=1', '/x/v1/files'])
})

t.test('a route that sends a request where it came to is left alone', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, guarded)
  await app.register(replyFrom, { base: upstream.url })
  app.get('/:any/*', (_request, reply) => reply.from())
  t.equal((await app.inject('/x/v1/files')).statusCode, 200)
})

t.test('a host may have unknown paths pass, and endpoints do not pass with them', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const ask = await start(t, upstream, { prefix: '/:any', rewritePrefix: '/v1' }, { ...guarded, auth: { unknown: 'leave' } })
  t.equal(await ask('GET', '/x/files'), 200)
  t.equal(await ask('POST', '/x/chat/completions'), 404)
  t.strictSame(upstream.seen.map(({ url }) => url), ['/v1/files'])
})

const passing: ReadonlyArray<readonly [name: string, prefix: string, mount: () => object, options: LlmGatewayOptions]> = [
  ['a plain mount', '', () => ({ prefix: '/v1', rewritePrefix: '/v1' }), { ...guarded, auth: { unknown: 'leave' } }],
  ['a mount', '', () => ({ prefix: '/v1', rewritePrefix: '/v1', ...proxyOptions({ unknown: 'forward' }) }), guarded],
  ['a mount below a prefix', '/llm', () => ({ prefix: '/llm', rewritePrefix: '', ...proxyOptions({ unknown: 'forward' }) }), guarded],
]
for (const [name, prefix, mount, options] of passing) {
  t.test(`nor do endpoints in other letters, where ids in capitals do: ${name}`, async (t) => {
    const upstream = await startUpstream(t)
    upstream.respond = () => ({ body: {} })
    const ask = await start(t, upstream, mount(), prefix === '' ? options : { ...options, prefix })
    for (const path of ['/v1/Chat/completions', '/v1/RESPONSES']) t.equal(await ask('POST', prefix + path), 404, path)
    t.equal(upstream.seen.length, 0)
    t.equal(await ask('GET', `${prefix}/v1/messages/batches/msgbatch_01AbC`), 200)
    t.strictSame(upstream.seen.map(({ url }) => url), ['/v1/messages/batches/msgbatch_01AbC'])
  })
}

t.test('the start warns of a mount that sends to a version what nobody is asked a key for', async (t) => {
  async function warned (mount: object, options: LlmGatewayOptions = guarded): Promise<boolean> {
    const lines: string[] = []
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
    t.teardown(() => app.close())
    await app.register(llmGateway, options)
    await app.register(httpProxy, { upstream: 'http://127.0.0.1:1', ...mount })
    await app.ready()
    return lines.some((line) => line.includes('nobody is asked for a key there'))
  }
  t.equal(await warned({ prefix: '/llm', rewritePrefix: '/v1' }), true)
  t.equal(await warned({ prefix: '/llm', upstream: 'http://127.0.0.1:1/openai/v1' }), true)
  t.equal(await warned({ prefix: '/llm', upstream: 'http://127.0.0.1:1/openai/v1', rewritePrefix: '' }), true, 'an empty one is none')
  t.equal(await warned({ prefix: '/llm/v1', rewritePrefix: '/v1' }), true)
  t.equal(await warned({ prefix: '/v1', rewritePrefix: '/v1' }), false, 'it is guarded')
  t.equal(await warned({ prefix: '/:any', rewritePrefix: '/v1' }), false, 'what it sends is looked at')
  t.equal(await warned({ prefix: '/app', rewritePrefix: '/backend' }), false)
  t.equal(await warned({ prefix: '/app', upstream: '', replyOptions: { getUpstream: () => 'http://127.0.0.1:1' } }), false)
  const own = gatewayOptions('http://127.0.0.1:1')
  t.equal(await warned({ prefix: '/v1', rewritePrefix: '/v1' }, own), true, 'its endpoints are ours, and all else below it is sent')
  t.equal(await warned({ prefix: '/', upstream: 'http://127.0.0.1:1/v1' }, own), true)
  t.equal(await warned({ ...proxyOptions(), prefix: '/v1', rewritePrefix: '/v1' }, own), false)
  t.equal(await warned({ prefix: '/v1/users', rewritePrefix: '/v1/users' }, own), false)
})

const mountsOfSockets: Record<string, object> = {
  'an address for sockets alone': { upstream: undefined, prefix: '/:any', rewritePrefix: '/v1' },
  'a function that rewrites': { prefix: '/', preRewrite: (url: string) => url.replace(/^\/x\//, '/v1/') },
  'routes of its own': { prefix: '/:any', rewritePrefix: '/v1', routes: ['/:rest', '/:rest/*'] },
}

for (const [how, mount] of Object.entries(mountsOfSockets)) {
  t.test(`nor is a socket opened where the options of the mount do not tell: ${how}`, async (t) => {
    const upstream = await startUpstream(t)
    const ask = await start(t, upstream, { ...mount, websocket: true, wsUpstream: upstream.url.replace('http', 'ws') }, guarded)
    t.equal(await ask('GET', '/x/realtime', ...socket), 401)
    t.equal(await ask('GET', '/x/realtime', ...socket, bearer), 426)
  })
}

t.test('nor through a mount that is older than the gateway', async (t) => {
  const upstream = await startUpstream(t)
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/:any', rewritePrefix: '/v1', websocket: true })
  await app.register(llmGateway, guarded)
  t.equal((await askOnce(await listen(app), ['GET /x/realtime HTTP/1.1', 'host: h', ...socket])).status, 401)
})

t.test('a socket is one where what says so stands behind more headers than Node tells of', async (t) => {
  const upstream = await startUpstream(t)
  const [connection = '', ...others] = socket
  const headers = [...others, ...Array.from({ length: 2_100 }, () => 'a:'), connection]
  const rewritten = await start(t, upstream, { prefix: '/:any', rewritePrefix: '/v1', websocket: true }, guarded)
  // Node 24 refuses so many by itself.
  const refused = /^(?:401|431)$/
  t.match(await rewritten('GET', '/x/realtime', ...headers), refused)
  const asLeft = { ...guarded, auth: { unknown: 'leave' as const } }
  const left = await start(t, upstream, { prefix: '/v1', rewritePrefix: '/v1', websocket: true }, asLeft)
  t.match(await left('GET', '/v1/realtime', ...headers), refused)
})

t.test('a hook after the gateway that writes another path makes no model request that nobody was asked a key for', async (t) => {
  for (const name of ['onRequest', 'preHandler'] as const) {
    const upstream = await startUpstream(t)
    upstream.respond = () => ({ body: {} })
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(llmGateway, guarded)
    app.addHook(name, async ({ raw }) => { raw.url = String(raw.url).replace(/^\/api\//, '/v1/').replace('/app', '/web') })
    await app.register(httpProxy, { upstream: upstream.url, prefix: '/', websocket: true })
    const url = await listen(app)
    const ask = async (line: string, ...headers: string[]): Promise<number> => (
      await askOnce(url, [`${line} HTTP/1.1`, 'host: h', ...headers])
    ).status
    t.equal(await ask('GET /api/files'), 404)
    t.equal(await ask('GET /api/models'), 404)
    t.equal(await ask('POST /api/chat/completions', 'content-length: 0'), 404)
    t.equal(await ask('GET /api/realtime', ...socket), 426)
    t.equal(await ask('GET /app/files'), 200)
    t.equal(await ask('GET /v1/models', bearer), 200)
    t.strictSame(upstream.seen.map(({ url }) => url), ['/web/files', '/v1/models'])
  }
})

t.test('a preflight does not go to a version either', async (t) => {
  const upstream = await startUpstream(t)
  const ask = await start(t, upstream, { prefix: '/:any', rewritePrefix: '/v1' }, guarded)
  const asks = ['origin: https://page.example', 'access-control-request-method: POST']
  t.equal(await ask('OPTIONS', '/x/files', ...asks), 204)
  t.equal(await ask('OPTIONS', '/x/chat/completions', ...asks), 204)
  t.strictSame(upstream.seen, [])
})

t.test('what a provider reads as its version is one, however it is spelled and whatever stands before it', async (t) => {
  const upstream = await startUpstream(t)
  const ask = await start(t, upstream, { prefix: '/:any', rewritePrefix: '/openai' }, guarded)
  for (const path of ['/x/%76%31/files', '/x/\\v1\\files', '/x/.\\v1/files', '/x/%76%31/chat/completions']) {
    t.equal(await ask('GET', path), 404, path)
  }
  t.strictSame(upstream.seen, [])
})

const letThrough: Record<string, [mount: object, options: LlmGatewayOptions]> = {
  'below a version': [{ prefix: '/v1/:any', rewritePrefix: '/v1' }, { ...guarded, auth: { unknown: 'leave' } }],
  'below a version, by an adapted mount': [{ prefix: '/v1/:any', rewritePrefix: '/v1', ...proxyOptions({ unknown: 'forward' }) }, guarded],
  'by an adapted mount': [{ prefix: '/:any/:other', rewritePrefix: '/v1', ...proxyOptions({ unknown: 'forward' }) }, guarded],
}

for (const [how, [mount, options]] of Object.entries(letThrough)) {
  t.test(`where unknown paths pass, none passes that becomes an endpoint: ${how}`, async (t) => {
    const upstream = await startUpstream(t)
    upstream.respond = () => ({ body: {} })
    const ask = await start(t, upstream, mount, options)
    t.equal(await ask('POST', '/v1/x/chat/completions'), 404)
    t.equal(await ask('GET', '/v1/x/models'), 404)
    t.equal(await ask('GET', '/v1/x/any'), 200)
    t.strictSame(upstream.seen.map(({ url }) => url), ['/v1/any'])
  })
}

const lastResorts: Record<string, (app: FastifyInstance) => unknown> = {
  'that a route of the host calls': (app) => app.get('/*', (_request, reply) => { reply.callNotFound() })
    .setNotFoundHandler((request, reply) => { reply.from(request.url) }),
  'that sends what was asked without saying so': (app) => app.setNotFoundHandler((_request, reply) => { reply.from() }),
}

for (const [how, prepare] of Object.entries(lastResorts)) {
  t.test(`nor does a not-found handler ${how}`, async (t) => {
    const upstream = await startUpstream(t)
    upstream.respond = () => ({ body: {} })
    const app: FastifyInstance = Fastify()
    t.teardown(() => app.close())
    await app.register(replyFrom, { base: upstream.url })
    await app.register(llmGateway, gatewayOptions(upstream.url))
    prepare(app)
    t.equal((await app.inject('/v1/files')).statusCode, 404)
    t.equal((await app.inject('/app/files')).statusCode, 200)
    t.strictSame(upstream.seen.map(({ url }) => url), ['/app/files'])
  })
}

t.test('where nobody is asked for a key, a mount opens sockets where it likes', async (t) => {
  const upstream = await startUpstream(t)
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(paths)
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/:any', rewritePrefix: '/v1', websocket: true })
  const opened = once(upstream.server, 'upgrade')
  t.equal((await askOnce(await listen(app), ['GET /x/realtime HTTP/1.1', 'host: h', ...socket])).status, 101)
  const [request, open] = await opened
  t.equal(request.url, '/v1/realtime')
  open.destroy()
})

t.test('a route of the host that sends by itself is no mount that opens sockets, and is looked at when it sends', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(replyFrom, { base: upstream.url })
  await app.register(llmGateway, guarded)
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/ws', websocket: true })
  app.get('/:any/*', (request, reply) => { reply.from(request.url.replace('/x/', '/v1/').replace('/y/', '/app/')) })
  app.post('/:any/*', (request, reply) => { reply.from(request.url) })
  const url = await listen(app)
  for (const [path, status] of [['/x/realtime', 404], ['/y/files', 200]] as const) {
    t.equal((await askOnce(url, [`GET ${path} HTTP/1.1`, 'host: h', ...socket])).status, status, path)
  }
  t.strictSame(upstream.seen.map(({ url }) => url), ['/app/files'])
})

t.test('a hook between two of the plugins may make a model request, that has its key asked for', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(paths)
  app.addHook('onRequest', async ({ raw }) => { raw.url = String(raw.url).replace(/^\/api\//, '/v1/') })
  await app.register(auth, { groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }] })
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/' })
  t.equal((await app.inject('/api/models')).statusCode, 401)
  t.equal((await app.inject({ url: '/api/models', headers: { authorization: `Bearer ${secret}` } })).statusCode, 200)
  t.strictSame(upstream.seen.map(({ url }) => url), ['/v1/models'])
})
