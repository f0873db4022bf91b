import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { auth } from '../../plugins/auth/index.js'
import llmGateway, { forward, metrics, paths } from '../../plugins/index.js'
import { hostAuth, startHost } from '../helpers/host.js'
import { startUpstream } from '../helpers/upstream.js'
import { errors } from '../../plugins/errors/index.js'
import { gatewayOptions, secret } from '../helpers/gateway.js'

const bundle = { ...hostAuth, routes: false, metrics: false } as const
const chat = '/v1/chat/completions'

type Build = (app: FastifyInstance) => Promise<void>

function startApp (t: Test, build: Build): FastifyInstance {
  const app = Fastify()
  t.teardown(() => app.close())
  app.register(async (scope) => await build(scope))
  return app
}

async function inScope (app: FastifyInstance, prefix: string, build: Build): Promise<void> {
  await app.register(async (scope) => await build(scope), { prefix })
}

t.test('a second gateway beside another in its scope fails the start: one of them would guard nothing', async (t) => {
  const cases: Record<string, Build> = {
    'twice in one place': async (app) => { await app.register(llmGateway, bundle).register(llmGateway, bundle) },
    'a bundle that has metrics': async (app) => {
      await app.register(llmGateway, { ...bundle, metrics: {} }).register(llmGateway, {
        ...bundle, metrics: {},
      })
    },
    'below another, with a prefix': async (app) => {
      await app.register(llmGateway, bundle)
      await inScope(app, '', async (scope) => { await scope.register(llmGateway, { ...bundle, prefix: '/b' }) })
    },
    'beside another, below metrics for both': async (app) => {
      await app.register(metrics)
      for (const prefix of ['/a', '/b']) {
        await inScope(app, '', async (scope) => { await scope.register(llmGateway, { ...bundle, prefix }) })
      }
    },
    'auth alone': async (app) => {
      await app.register(auth, hostAuth)
      await inScope(app, '/b', async (scope) => { await scope.register(auth, hostAuth) })
    },
  }
  for (const [name, build] of Object.entries(cases)) {
    await t.rejects(
      async () => await startApp(t, build).ready(), { code: 'LLM_GATEWAY_OPTION', message: /^option auth is registered already/ }, name
    )
  }
})

t.test('a gateway in a scope that the plugins around it do not know fails the start', async (t) => {
  const app = startApp(t, async (app) => {
    await app.register(metrics)
    await inScope(app, '/llm', async (scope) => { await scope.register(llmGateway, bundle) })
  })
  await t.rejects(async () => await app.ready(), {
    code: 'LLM_GATEWAY_OPTION', message: /^option prefix is not known to the plugins of the gateway outside of the scope at \/llm/,
  })
})

t.test('a scope within a guarded place cannot move it', async (t) => {
  for (const [place, plugin] of Object.entries({ paths, forward })) {
    const app = startApp(t, async (app) => {
      await app.register(llmGateway, bundle)
      await inScope(app, '', async (scope) => { await scope.register(plugin, { prefix: '/b' }) })
    })
    await t.rejects(
      async () => await app.ready(),
      { code: 'LLM_GATEWAY_OPTION', message: 'option prefix is none for the gateway around this scope, and cannot be /b here' },
      place
    )
  }
  await t.resolves(
    async () => await startApp(t, async (app) => { await app.register(auth, hostAuth).register(paths, { prefix: '/b' }) }).ready(),
    'in the same place, in any order'
  )
})

t.test('scopes side by side, and metrics around a gateway: each guards its own', async (t) => {
  const upstream = await startUpstream(t)
  const cases: Record<string, { at: string[], build: Build }> = {
    'side by side': {
      at: [`/a${chat}`, `/b${chat}`],
      build: async (app) => {
        for (const prefix of ['/a', '/b']) {
          await inScope(
            app,
            prefix,
            async (scope) => { await scope.register(llmGateway, bundle).register(httpProxy, { upstream: upstream.url, prefix: '/v1' }) }
          )
        }
      },
    },
    'metrics around, and a prefix': {
      at: [`/llm${chat}`],
      build: async (app) => {
        await app.register(metrics)
        await inScope(app, '', async (scope) => {
          await scope.register(llmGateway, { ...bundle, prefix: '/llm' }).register(httpProxy, {
            upstream: upstream.url, prefix: '/llm/v1',
          })
        })
      },
    },
  }
  for (const [name, { at, build }] of Object.entries(cases)) {
    const app = startApp(t, build)
    for (const url of at) {
      t.equal((await app.inject({ method: 'POST', url, headers: { authorization: 'Bearer wrong' } })).statusCode, 401, `${name}: ${url}`)
    }
    t.strictSame(upstream.seen, [])
  }
})

t.test('a gateway in a scope without a route, as autoload makes one of a plugin file, says that it guards nothing', async (t) => {
  const upstream = await startUpstream(t)
  const mount = { upstream: upstream.url, prefix: '/v1' }
  const cases: Record<string, [isTold: boolean, build: Build]> = {
    'the mount is elsewhere': [true, async (app) => {
      await inScope(app, '', async (scope) => { await scope.register(llmGateway, bundle) })
      await app.register(httpProxy, mount)
    }],
    'the mount is there': [false, async (app) => {
      await inScope(app, '', async (scope) => { await scope.register(llmGateway, bundle).register(httpProxy, mount) })
    }],
    'own routes': [false, async (app) => {
      await inScope(app, '', async (scope) => { await scope.register(llmGateway, gatewayOptions(upstream.url)) })
    }],
    'no scope': [false, async (app) => { await app.register(httpProxy, mount).register(llmGateway, bundle) }],
  }
  for (const [name, [isTold, build]] of Object.entries(cases)) {
    const logged: string[] = []
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line: string) => { logged.push(JSON.parse(line).msg) } } } })
    t.teardown(() => app.close())
    await build(app)
    await app.ready()
    t.equal(logged.some((line) => line.startsWith('the gateway stands in a scope of its own')), isTold, name)
    const { statusCode } = await app.inject({ method: 'POST', url: chat, headers: { authorization: 'Bearer wrong' } })
    t.equal(statusCode === 401, !isTold, `${name}: ${statusCode}`)
  }
})

t.test('in a scope with a prefix the endpoints stand below it, and nothing there is unguarded', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: { ok: true } })
  const cases: [scope: string, mount: string, prefix: string | undefined][] = [
    ['/api', '/v1', undefined], ['/api/', '/v1', '/api'], ['/api', '/llm/v1', '/llm'], ['/api', '/apiary/v1', '/apiary'],
    ['/api/v1', '/', undefined], ['/v1', '/', undefined],
  ]
  for (const [prefix, mount, option] of cases) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(async (scope) => {
      await scope.register(llmGateway, {
        routes: false, groups: hostAuth.groups, keys: hostAuth.keys ?? [], ...option !== undefined && { prefix: option },
      })
      await scope.register(httpProxy, { upstream: upstream.url, prefix: mount, rewritePrefix: mount === '/' ? '/v1/' : '/v1' })
    }, { prefix })
    const url = `${prefix}/${mount}/chat/completions`.replace(/\/+/g, '/')
    const ask = async (headers: Record<string, string>, payload: string): Promise<number> =>
      (await app.inject({ method: 'POST', url, headers: { 'content-type': 'application/json', ...headers }, payload })).statusCode
    const chat = '{"model":"m","messages":[{"role":"user","content":"x"}]}'
    t.strictSame([await ask({}, chat), await ask({ authorization: `Bearer ${secret}` }, '{}')], [401, 400], `${url} is guarded`)
    t.equal(upstream.seen.length, 0)
    t.equal(await ask({ authorization: `Bearer ${secret}` }, chat), 200, url)
    t.equal(upstream.seen.pop()?.url, '/v1/chat/completions')
  }
})

t.test('a bundle in a scope serves its own routes there', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(async (scope) => { await scope.register(llmGateway, gatewayOptions(upstream.url)) }, { prefix: '/api' })
  const ask = async (authorization: string): Promise<number> =>
    (await app.inject({
      method: 'POST', url: '/api/v1/embeddings', headers: { authorization }, payload: { model: 'm', input: 'x' },
    })).statusCode
  t.strictSame([await ask(`Bearer ${secret}`), await ask('Bearer other')], [200, 401])
  t.strictSame(upstream.seen.map(({ url }) => url), ['/v1/embeddings'])
})

t.test('a scope whose prefix holds a parameter fails the start', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const inScope = app.register(async (scope) => { await scope.register(auth, hostAuth) }, { prefix: '/:tenant/v1' })
  await t.rejects(async () => await inScope, {
    code: 'LLM_GATEWAY_OPTION', message: /option prefix cannot be read from a scope at \/:tenant\/v1/,
  })
  const known = await startHost(t, 'http://127.0.0.1:9')
  await t.resolves(
    async () => await known.register(async (scope) => { await scope.register(errors) }, { prefix: '/:tenant' }), 'the root has told where'
  )
})
