import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { auth } from '../../plugins/auth/index.js'
import llmGateway, { forward, metrics, paths } from '../../plugins/index.js'
import { hostAuth } from '../helpers/host.js'
import { startUpstream } from '../helpers/upstream.js'

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
      async () => await startApp(t, build).ready(), { code: 'LLM_GATEWAY_OPTION', message: /^option auth stands here already/ }, name
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
