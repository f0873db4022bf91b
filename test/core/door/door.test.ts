import cors from '@fastify/cors'
import replyFrom from '@fastify/reply-from'
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify'
import t from 'tap'
import llmGateway, { auth, forward, metrics, paths, proxyOptions, upstreams, validation } from '../../../plugins/index.js'
import { everyProtocol, gatewayOptions, secret } from '../../helpers/gateway.js'
import { hostAuth } from '../../helpers/host.js'
import { startUpstream } from '../../helpers/upstream.js'
import { askOnce } from '../../helpers/wire.js'
import {
  bearer, chat, groupSecret, guarded, json, mount, socketHeaders, startApp, startProvider, upgradeOf, type Mount,
} from './door-app.js'

t.test('a preflight never goes upstream', async (t) => {
  const preflight = [
    'host: h', 'origin: https://page.example', 'access-control-request-method: POST', 'access-control-request-headers: authorization',
    bearer, 'x-goog-api-key: canary', 'cookie: canary',
  ]
  const places: Record<string, (app: FastifyInstance, upstream: string) => Promise<void>> = {
    'an adapted mount': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      for (const prefix of ['/v1', '/v1beta']) await mount(app, upstream, { ...proxyOptions(), prefix, rewritePrefix: prefix })
    },
    'an adapted mount of everything': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      await mount(app, upstream, { ...proxyOptions(), prefix: '/' })
    },
    'an adapted mount that passes on what nobody knows': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      await mount(app, upstream, { ...proxyOptions({ unknown: 'forward' }), prefix: '/' })
    },
    'an adapted mount without keys': async (app, upstream) => {
      await app.register(paths)
      await mount(app, upstream, { ...proxyOptions(), prefix: '/' })
    },
    'an adapted mount beside plugins that guard nothing': async (app, upstream) => {
      await app.register(metrics)
      await mount(app, upstream, { ...proxyOptions(), prefix: '/' })
    },
    'an untouched mount': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      for (const prefix of ['/v1', '/v1beta']) await mount(app, upstream, { prefix, rewritePrefix: prefix })
    },
    'routes of our own': async (app, upstream) => {
      await app.register(llmGateway, gatewayOptions(upstream))
    },
  }
  for (const [name, build] of Object.entries(places)) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => await build(app, upstream.url))
    for (const path of [
      '/v1/chat/completions', '/v1/v1/messages', '/v1/responses/resp_1', '/v1beta/models/m:generateContent', '/v1/anything', '/v1',
    ]) {
      const reply = await askOnce(url, [`OPTIONS ${path} HTTP/1.1`, ...preflight])
      t.match([reply.status, reply.body], [204, ''], `${name}: ${path}`)
      t.strictSame(Object.keys(reply.headers).filter((name) => name.startsWith('access-control')), [])
    }
    t.strictSame(came(), [], name)
  }
})

t.test('preflights of a host that has CORS are answered by it, and its word on who may read a reply stays', async (t) => {
  for (const rewriting of [false, true]) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => {
      await app.register(cors, { origin: 'https://page.example' })
      await app.register(llmGateway, guarded)
      await mount(app, upstream.url, { ...proxyOptions(), prefix: '/v1', rewritePrefix: '/v1', ...!rewriting && { replyOptions: {} } })
    })
    const reply = await askOnce(url, [
      'OPTIONS /v1/chat/completions HTTP/1.1', 'host: h', 'origin: https://page.example', 'access-control-request-method: POST',
    ])
    t.match([reply.status, reply.headers['access-control-allow-origin']], [204, 'https://page.example'])
    t.strictSame(came(), [])
    upstream.queue({ fixture: 'chat_completions.json', headers: { 'access-control-allow-origin': '*' } })
    const read = await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', 'origin: https://page.example', bearer, json], chat)
    t.match([read.status, read.headers['access-control-allow-origin']], [200, 'https://page.example'])
  }
})

t.test('what is below an adapted mount and no endpoint is answered here, whatever its path', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, guarded)
    await mount(app, `${upstream.url}/v1/`, { ...proxyOptions(), prefix: '/' })
  })
  for (const path of ['/files', '/realtime', '/anything', '/']) {
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS', 'HEAD']) {
      for (const key of [[], [bearer]]) {
        const reply = await askOnce(url, [`${method} ${path} HTTP/1.1`, 'host: h', ...key, 'content-length: 0', 'connection: close']).catch(
          () => null
        )
        // A reply to HEAD has a length and no body.
        if (method !== 'HEAD') t.equal(reply?.status, 404, `${method} ${path}`)
      }
    }
  }
  t.strictSame(came(), [])
})

t.test('without the guard nothing of a guarded app is sent', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(upstreams, { upstreams: { main: { url: upstream.url, credential: groupSecret } } })
    await app.register(forward)
    await app.register(validation)
    await mount(app, upstream.url, { ...proxyOptions(), prefix: '/x/v1', websocket: true })
    await app.register(async (scope) => { await scope.register(auth, hostAuth) })
  })
  t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json], chat)).status, 500)
  t.strictSame(came(), [])
})

t.test('a mount outside of the scope that asks for keys, with the plugins around both, passes nothing', async (t) => {
  for (const more of [proxyOptions, () => ({})]) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => {
      await app.register(paths)
      await mount(app, upstream.url, { ...more(), prefix: '/v1', rewritePrefix: '/v1' })
      await app.register(async (scope) => { await scope.register(auth, hostAuth) })
    })
    for (const key of [[], [bearer]]) {
      const reply = await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json, ...key], chat)
      t.equal(reply.status, 500, reply.body)
    }
    t.strictSame(came(), [])
  }
})

t.test('a mount of some hosts alone is guarded, too', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, guarded)
    await mount(app, upstream.url, { prefix: '/v1', rewritePrefix: '/v1', constraints: { host: 'h' } })
  })
  t.equal((await askOnce(url, ['GET /v1/files HTTP/1.1', 'host: h'])).status, 404)
  t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json], chat)).status, 401)
  t.strictSame(came(), [])
  t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json, bearer], chat)).status, 200)
})

t.test('a mount is guarded however its routes spell where it stands', async (t) => {
  const cases: ReadonlyArray<[name: string, options: Mount, server: FastifyServerOptions]> = [
    ['a wildcard that ends a segment', { prefix: '/v1', routes: ['*'] }, {}],
    ['a parameter that ends a segment', { prefix: '/v:number' }, {}],
    ['letters that do not count', { prefix: '/V1' }, { routerOptions: { caseSensitive: false } }],
  ]
  for (const [name, options, server] of cases) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => {
      await app.register(llmGateway, guarded)
      await mount(app, upstream.url, { ...options, rewritePrefix: '/v1', websocket: true })
    }, server)
    for (const path of ['/v1/files', '/v1/batches/b']) t.equal((await askOnce(url, [`GET ${path} HTTP/1.1`, 'host: h'])).status, 404, name)
    const preflight = ['origin: https://a.example', 'access-control-request-method: POST']
    t.equal((await askOnce(url, ['OPTIONS /v1/messages HTTP/1.1', 'host: h', ...preflight])).status, 204, name)
    const reply = await upgradeOf(url, '/v1/realtime')
    t.equal(reply === 'no reply' ? reply : reply.status, 401, name)
    t.strictSame(came(), [], name)
    t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json, bearer], chat)).status, 200, name)
  }
})

t.test('a mount of everything beside one of models is the host\'s', async (t) => {
  const models = await startProvider(t)
  const site = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, guarded)
    for (const prefix of ['/v1', '/v1beta']) await mount(app, models.upstream.url, { ...proxyOptions(), prefix, rewritePrefix: prefix })
    await mount(app, site.upstream.url, { prefix: '/' })
  })
  for (const path of ['/', '/page', '/v1alpha/page']) t.equal((await askOnce(url, [`GET ${path} HTTP/1.1`, 'host: h'])).status, 200, path)
  t.equal(site.came().length, 3)
  t.strictSame(models.came(), [])
})

t.test('a mount outside of the scope of its gateway passes nothing, where a hook of its own keeps the start from telling', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(async (scope) => { await scope.register(llmGateway, guarded) })
    const preHandler = (_request: unknown, _reply: unknown, done: () => void): void => done()
    await mount(app, upstream.url, { ...proxyOptions(), prefix: '/v1', rewritePrefix: '/v1', websocket: true, preHandler })
  })
  t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json], chat)).status, 500)
  const reply = await upgradeOf(url, '/v1/realtime')
  t.equal(reply === 'no reply' ? reply : reply.status, 401)
  t.strictSame(came(), [])
})

t.test('a request whose path is repaired behind the guard is asked for its key once', async (t) => {
  const upstream = await startUpstream(t)
  let hits = 0
  const { app } = await startApp(t, async (app) => {
    await app.register(metrics)
    await app.register(auth, { groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }] })
    await app.register(paths)
    await app.register(upstreams, { upstreams: { main: { url: upstream.url, credential: 'x' } } })
    await app.register(forward)
  })
  const reply = await app.inject({
    method: 'POST',
    url: '/v1/v1/chat/completions',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    payload: chat,
  })
  t.equal(reply.statusCode, 200)
  for (const [, count] of (await app.inject('/metrics')).body.matchAll(/^llm_gateway_key_lookups_total\{.*\} (\d+)$/gm)) {
    hits += Number(count)
  }
  t.equal(hits, 1)
})

t.test('a not-found handler that sends what it is asked passes nothing on that a mount would not', async (t) => {
  const asked = ['origin: https://page.example', 'access-control-request-method: POST']
  const { groups, keys = [] } = guarded
  const places: Record<string, (app: FastifyInstance) => Promise<void>> = {
    'the bundle': async (app) => { await app.register(llmGateway, guarded) },
    'auth alone': async (app) => { await app.register(auth, { groups, keys }) },
    'a bundle that leaves unknown paths to the host': async (app) => {
      await app.register(llmGateway, { ...guarded, paths: { unknown: 'leave' } })
    },
  }
  for (const [name, register] of Object.entries(places)) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => {
      await app.register(replyFrom, { base: upstream.url })
      await register(app)
      app.setNotFoundHandler((request, reply) => { reply.from(request.raw.url) })
    })
    const ask = async (method: string, path: string, ...headers: string[]): Promise<number> => (
      await askOnce(url, [`${method} ${path} HTTP/1.1`, 'host: h', ...headers])
    ).status
    t.equal(await ask('GET', '/v1/models'), 401, name)
    t.equal(await ask('GET', '/v1/files'), 404)
    t.equal(await ask('GET', '/v1/files', bearer), 404)
    t.equal(await ask('OPTIONS', '/v1/files', ...asked), 204)
    t.equal(await ask('OPTIONS', '/v1/models', ...asked), 204)
    t.ok([401, 404].includes(await ask('GET', '/v1/realtime', ...socketHeaders.slice(1))))
    t.strictSame(came(), [], 'none of those went to the provider')
    t.equal(await ask('GET', '/v1/models', bearer), 200)
    t.equal(await ask('GET', '/files'), 200, 'what is none of ours is the host\'s')
    t.equal(came().length, 2)
  }
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(replyFrom, { base: upstream.url })
    await app.register(auth, { groups, keys, unknown: 'leave' })
    app.setNotFoundHandler((request, reply) => { reply.from(request.raw.url) })
  })
  t.equal((await askOnce(url, ['GET /v1/files HTTP/1.1', 'host: h'])).status, 200, 'a host may want it so')
  t.equal(came().length, 1)
})

t.test('a model request is sent by no hook or error handler that comes before the guard is done with it', async (t) => {
  const fail = async (): Promise<never> => { throw new Error('from a hook') }
  const hooks: Record<string, object> = {
    onRequest: { onRequest: (_request: FastifyRequest, reply: FastifyReply) => { reply.from() } },
    preValidation: { preValidation: (_request: FastifyRequest, reply: FastifyReply) => { reply.from() } },
    'an error handler': {
      onRequest: fail, errorHandler: (_error: Error, _request: FastifyRequest, reply: FastifyReply) => { reply.from() },
    },
  }
  const passing = { preHandler: (_request: FastifyRequest, reply: FastifyReply) => { reply.from() } }
  const headers = { authorization: `Bearer ${secret}`, 'x-api-key': secret }
  const { upstream, came } = await startProvider(t)
  for (const [name, options] of Object.entries({ ...hooks, preHandler: passing })) {
    const { app } = await startApp(t, async (app) => {
      await app.register(replyFrom, { base: upstream.url })
      await app.register(llmGateway, guarded)
      app.all('/v1/*', options, async () => '')
    })
    const { statusCode } = await app.inject({ url: '/v1/models', headers })
    t.equal(statusCode, name === 'preHandler' ? 200 : 500, name)
  }
  t.equal(came().length, 1)
  t.notMatch(came().join(), secret)
})
