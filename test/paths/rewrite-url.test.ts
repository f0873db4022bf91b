import t from 'tap'
import { createRewriteUrl } from '../../plugins/paths/index.js'
import type { RawRequest } from '../../plugins/core/call/identify.js'
import { build } from './seen-host.js'

t.test('a rewriteUrl of the host\'s own stands alone, and before or behind ours', async (t) => {
  const renamed = (url = ''): string => url.replace(/^\/api\/ai\//, '/v1/')
  const repair = createRewriteUrl()
  const ways: Record<string, (raw: RawRequest) => string> = {
    alone: (raw) => renamed(raw.url),
    before: (raw) => {
      raw.url = renamed(raw.url)
      return repair(raw)
    },
    behind: (raw) => renamed(repair(raw)),
  }
  for (const [way, rewriteUrl] of Object.entries(ways)) {
    const { app, seen } = await build(t, {}, { rewriteUrl })
    for (const url of ['/api/ai/messages', '/api/ai/v1/messages', '/v1/v1/messages', '/messages']) {
      await app.inject({ method: 'POST', url })
      t.match(seen.pop(), { llm: 'messages', url: '/v1/messages' }, `${way}: ${url}`)
    }
  }
})

t.test('a rewriteUrl that knows less than the app decides nothing', async (t) => {
  const { app, seen } = await build(t, { prefix: '/llm' }, { rewriteUrl: createRewriteUrl() })
  await app.inject({ method: 'POST', url: '/llm/v1/v1/messages' })
  t.match(seen.pop(), { llm: 'messages', url: '/llm/v1/messages' })
  const lax = await build(t, {}, { rewriteUrl: createRewriteUrl(), routerOptions: { caseSensitive: false } })
  t.equal((await lax.app.inject({ method: 'POST', url: '/V1/messages' })).statusCode, 400)
  t.equal((await lax.app.inject({ method: 'POST', url: '/v1/Messages' })).statusCode, 400)
  t.equal((await lax.app.inject({ method: 'GET', url: '/v1/Users' })).statusCode, 200)
  t.strictSame(lax.seen.map(({ url, llm }) => [url, llm]), [['/v1/Users', null]])
})

t.test('a key in the query of a path that is nobody\'s tells whose terms its 404 is in, with a rewriteUrl and without', async (t) => {
  for (const server of [{}, { rewriteUrl: createRewriteUrl() }]) {
    const { app } = await build(t, {}, server)
    const reply = await app.inject({ method: 'POST', url: '/v1alpha/nothing?key=canary' })
    t.match([reply.statusCode, reply.json()], [404, { error: { code: 404, status: 'NOT_FOUND' } }])
  }
})
