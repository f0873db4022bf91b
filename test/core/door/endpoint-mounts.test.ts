/** Mounts of the host's that nobody adapted and that stand at an endpoint itself, beside a gateway without routes of its own. */
import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions } from '../../../plugins/index.js'
import { secret } from '../../helpers/gateway.js'
import { chat, guarded, mount, startApp, startProvider, upgradeOf } from './door-app.js'

interface Site {
  readonly ask: (method: Method, path: string, headers?: Record<string, string>) => Promise<number>
  readonly upgrade: (path: string) => Promise<number | undefined>
  readonly came: () => string[]
}

type Method = 'DELETE' | 'GET' | 'HEAD' | 'OPTIONS' | 'PATCH' | 'POST' | 'PUT'
type Build = (app: FastifyInstance, upstream: string) => Promise<void>

async function start (t: Test, build: Build, options: FastifyServerOptions = {}, prefix = ''): Promise<Site> {
  const { upstream, came } = await startProvider(t)
  const { app, url } = await startApp(t, async (app) => {
    await app.register(llmGateway, { ...guarded, prefix })
    await build(app, upstream.url)
  }, options)
  return {
    came,
    ask: async (method, path, headers = {}) => {
      const body = method === 'POST' ? { headers: { ...headers, 'content-type': 'application/json' }, payload: chat } : { headers }
      return (await app.inject({ method, url: path, ...body })).statusCode
    },
    upgrade: async (path) => {
      const reply = await upgradeOf(url, path)
      return reply === 'no reply' ? undefined : reply.status
    },
  }
}

/** Each at its own path of the provider. */
function mounts (...prefixes: string[]): Build {
  return async (app, upstream) => {
    for (const prefix of prefixes) await mount(app, upstream, { prefix, rewritePrefix: prefix })
  }
}

const endpoints = [
  '/v1/chat/completions', '/v1/embeddings', '/v1/images/generations', '/v1/images/edits', '/v1/responses', '/v1/responses/compact',
  '/v1/messages', '/v1/messages/count_tokens', '/v1beta/models',
]
const below = ['/c1', '//c1', '/c1/', '/c1/messages', '/batches?limit=1', '/c1?a=%61', '/%61', '/:id']
const preflight = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
const methods: readonly Method[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

for (const endpoint of endpoints) {
  t.test(`what is below a plain mount of one endpoint is not sent without a key: ${endpoint}`, async (t) => {
    const { ask, upgrade, came } = await start(t, mounts(endpoint))
    for (const path of ['', '/', ...below].map((tail) => endpoint + tail)) {
      for (const method of methods) {
        const status = await ask(method, path)
        t.ok(status >= 400, `${method} ${path}: ${status}`)
      }
      t.equal(await ask('OPTIONS', path, preflight), 204, path)
      t.equal(await upgrade(path), 401, path)
    }
    t.strictSame(came(), [])
  })
}

const nested: Record<string, { build: Build, options?: FastifyServerOptions, path?: string, prefix?: string }> = {
  'below one of its version': { build: mounts('/v1', '/v1/chat/completions') },
  'above one of its version': { build: mounts('/v1/chat/completions', '/v1') },
  'below one of everything': { build: mounts('/', '/v1/chat/completions') },
  'with a slash at its end': { build: mounts('/v1/chat/completions/') },
  'with a parameter': { build: mounts('/:version/chat/completions') },
  'with a parameter, beside a route of the endpoint': {
    build: async (app, upstream) => {
      app.post('/v1/chat/completions', async () => ({}))
      await mount(app, upstream, { prefix: '/v1/chat/:what', rewritePrefix: '/v1/chat/completions' })
    },
  },
  'that has all but the endpoint\'s own method': {
    build: async (app, upstream) => {
      app.post('/v1/chat/completions', async () => ({}))
      await mount(app, upstream, { prefix: '/v1/chat/completions', httpMethods: ['GET', 'DELETE'] })
    },
  },
  'that opens sockets': { build: async (app, upstream) => await mount(app, upstream, { prefix: '/v1/chat/completions', websocket: true }) },
  'in a scope': {
    build: async (app, upstream) => {
      await app.register(async (scope) => await mount(scope, upstream, { prefix: '/chat/completions' }), { prefix: '/v1' })
    },
  },
  'below a prefix': { build: mounts('/llm/v1/chat/completions'), path: '/llm/v1/chat/completions', prefix: '/llm' },
  'in another case': { build: mounts('/V1/Chat/Completions'), options: { routerOptions: { caseSensitive: false } } },
  'in a router that takes runs of slashes for one': {
    build: mounts('/v1/chat/completions'), options: { routerOptions: { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true } },
  },
}

for (const [where, { build, options, path = '/v1/chat/completions', prefix }] of Object.entries(nested)) {
  t.test(`nor is it where the mount is one ${where}`, async (t) => {
    const { ask, upgrade, came } = await start(t, build, options, prefix)
    for (const tail of below) {
      for (const method of methods) {
        const status = await ask(method, path + tail)
        t.ok(status >= 400, `${method} ${path}${tail}: ${status}`)
      }
      t.equal(await upgrade(path + tail), 401)
    }
    t.strictSame(came(), [])
  })
}

t.test('an action that no endpoint has is sent by no mount that was not told to let unknown paths pass', async (t) => {
  for (const prefix of ['/v1/models', '/v1beta/models', '/']) {
    const { ask, came } = await start(t, async (app, upstream) => {
      const adapted = prefix === '/' ? ['/v1', '/v1beta'] : ['/v1']
      for (const version of adapted) await mount(app, upstream, { prefix: version, rewritePrefix: version, ...proxyOptions() })
      await mount(app, upstream, { prefix, rewritePrefix: prefix })
    })
    for (const path of ['/v1/models/m:predict', '/v1beta/models/m:predict', '/models/m:predict']) {
      t.equal(await ask('POST', path), 404, path)
    }
    t.strictSame(came(), [])
  }
})

t.test('the endpoint of such a mount is served with a key, and a host\'s own route below it without', async (t) => {
  const { ask, came } = await start(t, async (app, upstream) => {
    app.get('/v1/chat/completions/:id/notes', async () => ({}))
    app.get('/v1/chat/completions', async () => ({}))
    await mount(app, upstream, { prefix: '/v1/chat/completions', rewritePrefix: '/v1/chat/completions', httpMethods: ['POST', 'DELETE'] })
  })
  t.equal(await ask('POST', '/v1/chat/completions', { authorization: `Bearer ${secret}` }), 200)
  t.equal(came().length, 1)
  t.equal(await ask('GET', '/v1/chat/completions/c1/notes'), 200)
})
