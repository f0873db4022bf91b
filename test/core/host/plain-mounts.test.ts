import { once } from 'node:events'
import httpProxy from '@fastify/http-proxy'
import replyFrom from '@fastify/reply-from'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions, type LlmGatewayOptions } from '../../../plugins/index.js'
import { everyProtocol, listen, secret } from '../../helpers/gateway.js'
import { startUpstream, type Upstream } from '../../helpers/upstream.js'
import { askOnce } from '../../helpers/wire.js'

const bearer = `authorization: Bearer ${secret}`
const preflight = ['origin: https://a.example', 'access-control-request-method: POST']
const socket = ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==']
const guarded: LlmGatewayOptions = {
  groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
}

type Ask = (method: string, path: string, ...headers: string[]) => Promise<number>

interface Site {
  readonly app: FastifyInstance
  readonly upstream: Upstream
  readonly ask: Ask
}

/** Beside mounts that have `proxyOptions()` stands what `plain` registers. */
async function start (
  t: Test, plain: (app: FastifyInstance, upstream: string) => unknown, { prefix = '', isOlder = false, isAlone = false } = {}
): Promise<Site> {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  if (isOlder) await plain(app, upstream.url)
  await app.register(llmGateway, { ...guarded, prefix })
  for (const version of isAlone ? [] : ['/v1', '/v1beta']) {
    await app.register(httpProxy, { ...proxyOptions(), upstream: upstream.url, prefix: prefix + version, rewritePrefix: version })
  }
  if (!isOlder) await plain(app, upstream.url)
  const url = await listen(app)
  return {
    app,
    upstream,
    ask: async (method, path, ...headers) => {
      const body = method === 'POST' ? '{"model":"m","messages":[]}' : undefined
      const type = body === undefined ? [] : ['content-type: application/json']
      return (await askOnce(url, [`${method} ${path} HTTP/1.1`, 'host: h', ...type, ...headers], body)).status
    },
  }
}

const endpointPaths = [
  '/V1/chat/completions', '/v1/../V1/chat/completions', '/V1//chat/completions', '/V1/messages', '/V1/Messages/',
  '/V%31/chat/completions', '/%561/chat/completions', '/V1Beta/models/m:generateContent',
  '/V1Beta/models/m:predict', '/V1/Models/m:batchGenerateContent', '/V1beta/tunedModels/m:countTokens', '/V1/v1/tunedModels/m:EmbedContent',
  '/V1/v1/messages', '/V1/chat/completions?key=a', '/V1/chat/completions;a',
]

type Plain = (app: FastifyInstance, upstream: string) => unknown

const plainMounts: Record<string, Plain> = {
  'a mount': (app, upstream) => app.register(httpProxy, { upstream, prefix: '/' }),
  'one that opens sockets': (app, upstream) => app.register(httpProxy, { upstream, prefix: '/', websocket: true }),
  'one whose upstream is a function': (app, upstream) => (
    app.register(httpProxy, { upstream: '', prefix: '/', replyOptions: { getUpstream: () => upstream } })
  ),
  'a route that sends': async (app, upstream) => {
    await app.register(replyFrom, { base: upstream })
    app.all('/*', (_request, reply) => { reply.from() })
  },
  'a handler of what has no route': async (app, upstream) => {
    await app.register(replyFrom, { base: upstream })
    app.setNotFoundHandler((request, reply) => { reply.from(request.url) })
  },
}

for (const [how, plain] of Object.entries(plainMounts)) {
  for (const isOlder of [false, true]) {
    const age = isOlder ? ', older than the gateway' : ''
    t.test(`beside adapted mounts no endpoint in another case is sent: ${how}${age}`, async (t) => {
      const { app, upstream, ask } = await start(t, plain, { isOlder })
      for (const path of endpointPaths) {
        for (const headers of [[], [bearer]]) t.not(await ask('POST', path, ...headers), 200, path)
        for (const method of ['GET', 'HEAD', 'DELETE'] as const) await app.inject({ method, url: path })
        t.equal(await ask('OPTIONS', path, ...preflight), 204, path)
      }
      t.strictSame(upstream.seen.map(({ url }) => url), [])
      const own = ['/Page', '/Messages', '/api/V1/messages', '/V1/users']
      for (const path of how === 'a handler of what has no route' ? ['/Page'] : own) t.equal(await ask('GET', path), 200, path)
      t.equal(await ask('GET', '/v1/models', bearer), 200)
    })
  }
}

t.test('nor does such a mount make one of a path that is none', async (t) => {
  const mounts = [{ rewritePrefix: '/v1/' }, { preRewrite: (url: string) => url.replace('/Ask', '/v1/messages') }]
  for (const mount of mounts) {
    const { upstream, ask } = await start(t, (app, url) => app.register(httpProxy, { upstream: url, prefix: '/', ...mount }))
    for (const path of ['/Messages', '/Chat/completions', '/Ask']) await ask('POST', path)
    t.strictSame(upstream.seen.map(({ url }) => url).filter((url) => /^\/v1\/(?:chat|messages)/i.test(url)), [])
    t.equal(await ask('GET', '/app/messages'), 200)
  }
})

t.test('no socket below a version, in any case, is opened without a key', async (t) => {
  const { upstream, ask } = await start(t, (app, url) => app.register(httpProxy, { upstream: url, prefix: '/', websocket: true }))
  for (const path of ['/V1/realtime', '/V1/Responses', '/V%31/realtime?model=m', '//V1/realtime']) {
    t.equal(await ask('GET', path, ...socket), 401, path)
    t.equal(await ask('GET', path, ...socket, bearer), 426, path)
  }
  const opened = once(upstream.server, 'upgrade')
  t.equal(await ask('GET', '/app/V1/live', ...socket), 101)
  const [, open] = await opened
  open.destroy()
})

t.test('a mount that has something of its own as `llm` in its configuration is guarded like any other', async (t) => {
  for (const llm of [true, 'openai']) {
    const own = { prefix: '/v1', rewritePrefix: '/v1', websocket: true, config: { llm } }
    const { upstream, ask } = await start(t, (app, url) => app.register(httpProxy, { upstream: url, ...own }), { isAlone: true })
    t.equal(await ask('GET', '/v1/realtime', ...socket), 401)
    t.equal(await ask('OPTIONS', '/v1/files', ...preflight), 204)
    t.equal(await ask('GET', '/v1/models', bearer, 'x-api-key: canary'), 200)
    t.equal(upstream.seen.length, 1)
    t.notMatch(String(upstream.seen[0]?.rawHeaders), new RegExp(`canary|${secret}`))
  }
})

const liveSocket = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent'

for (const isAlone of [false, true]) {
  t.test(`what a provider has without a version in front is not sent by a mount of everything${isAlone ? ' alone' : ''}`, async (t) => {
    const plain: Plain = (app, url) => app.register(httpProxy, { upstream: url, prefix: '/', websocket: true })
    const { upstream, ask } = await start(t, plain, { isAlone })
    for (const path of [liveSocket, `/${liveSocket}`, liveSocket.replace('ws', '%77s'), liveSocket.toUpperCase()]) {
      t.equal(await ask('GET', path, ...socket), 401, path)
      t.equal(await ask('GET', path, ...socket, bearer), 426, path)
    }
    const files = ['/upload/v1beta/files', '/resumable/upload/v1beta/files', '/Upload//V1alpha/files?key=a', '/%75pload/v1beta/files']
    for (const path of isAlone ? files : []) {
      for (const headers of [[], [bearer]]) t.equal(await ask('POST', path, ...headers), 404, path)
    }
    if (isAlone) t.equal(await ask('GET', '/download/v1beta/files/f:download?alt=media'), 404)
    t.strictSame(upstream.seen, [])
    for (const path of ['/upload/images', '/download/v1/manual', '/ws/news']) t.equal(await ask('GET', path), 200, path)
  })
}

t.test('nor by a route of everything that names no path, or an empty one', async (t) => {
  for (const path of [undefined, '']) {
    const plain: Plain = async (app, url) => {
      await app.register(replyFrom, { base: url })
      app.all('/*', (_request, reply) => { reply.from(path) })
    }
    const { upstream, ask } = await start(t, plain, { isAlone: true })
    t.equal(await ask('POST', '/upload/v1beta/files', bearer), 404)
    t.strictSame(upstream.seen, [])
    t.equal(await ask('GET', '/upload/images'), 200)
  }
})

t.test('below the prefix of the gateway it is so, and elsewhere all is the host\'s', async (t) => {
  const { upstream, ask } = await start(t, (app, url) => app.register(httpProxy, { upstream: url, prefix: '/' }), { prefix: '/llm' })
  for (const path of ['/llm/V1/chat/completions', '/llm/V1/messages', '/LLM/V1/messages', '/LLM/v1/messages']) {
    t.not(await ask('POST', path), 200, path)
  }
  t.strictSame(upstream.seen, [])
  for (const path of ['/V1/messages', '/v1/messages', '/Messages']) t.equal(await ask('POST', path), 200, path)
  const rewriting = { prefix: '/', rewritePrefix: '/v1/' }
  const other = await start(t, (app, url) => app.register(httpProxy, { upstream: url, ...rewriting }), { prefix: '/llm' })
  t.equal(await other.ask('POST', '/messages'), 200)
})

t.test('nor is one sent that a mount makes of a path below the prefix', async (t) => {
  const preRewrite = (url: string): string => url.replace('/llm/raw', '/V1')
  const mount = (app: FastifyInstance, upstream: string): unknown => app.register(httpProxy, { upstream, prefix: '/', preRewrite })
  const { upstream, ask } = await start(t, mount, { prefix: '/llm' })
  for (const headers of [[], [bearer]]) t.not(await ask('POST', '/llm/raw/messages', ...headers), 200)
  t.strictSame(upstream.seen, [])
  t.equal(await ask('GET', '/llm/raw/users'), 200)
})

t.test('a route of the host that sends to an endpoint by itself is left alone, in whatever case', async (t) => {
  const { ask } = await start(t, async (app, upstream) => {
    await app.register(replyFrom, { base: upstream })
    app.post('/ask', (_request, reply) => { reply.from('/v1/messages') })
  })
  t.equal(await ask('POST', '/ask'), 200)
})
