import { inspect } from 'node:util'
import Fastify from 'fastify'
import t from 'tap'
import { auth } from '../../plugins/auth/index.js'
import { joinGateway } from '../../plugins/core/gateway.js'
import { modelCallOf } from '../../plugins/core/call/model-call.js'
import { paths } from '../../plugins/paths/index.js'
import { secret, startGateway } from '../helpers/gateway.js'
import { hostAuth } from '../helpers/host.js'
import { startUpstream } from '../helpers/upstream.js'
import { build, groups, version, type Target } from './rig.js'

const targets: readonly Target[] = [
  { family: 'openai', protocol: 'chat_completions', method: 'POST', url: '/v1/chat/completions' },
  { family: 'openai', protocol: 'responses', method: 'POST', url: '/v1/responses' },
  { family: 'openai', protocol: 'responses', method: 'POST', url: '/v1/responses/compact' },
  { family: 'openai', protocol: 'responses', method: 'POST', url: '/v1/responses/input_tokens' },
  { family: 'openai', protocol: 'responses', method: 'GET', url: '/v1/responses/r1' },
  { family: 'openai', protocol: 'responses', method: 'DELETE', url: '/v1/responses/r1' },
  { family: 'openai', protocol: 'images', method: 'POST', url: '/v1/images/generations' },
  { family: 'openai', protocol: 'images', method: 'POST', url: '/v1/images/edits' },
  { family: 'openai', protocol: 'embeddings', method: 'POST', url: '/v1/embeddings' },
  { family: 'anthropic', protocol: 'messages', method: 'POST', url: '/v1/messages', headers: version },
  { family: 'anthropic', protocol: 'messages', method: 'POST', url: '/v1/messages/count_tokens', headers: version },
  { family: 'anthropic', protocol: 'messages', method: 'GET', url: '/v1/models', headers: version },
  { family: 'gemini', protocol: 'generate_content', method: 'POST', url: '/v1beta/models/m:generateContent' },
  { family: 'gemini', protocol: 'generate_content', method: 'POST', url: '/v1beta/models/m:streamGenerateContent' },
  { family: 'gemini', protocol: 'generate_content', method: 'POST', url: '/v1/models/m:countTokens' },
]

const carrier = { openai: 'authorization', anthropic: 'x-api-key', gemini: 'x-goog-api-key' } as const

function withKey ({ family, headers = {} }: Target, value: string): Record<string, string> {
  return { ...headers, [carrier[family]]: family === 'openai' ? `Bearer ${value}` : value, ...(family === 'gemini' && {}) }
}

t.test('every endpoint with a key of every group', async (t) => {
  const { app } = await build(t)
  for (const target of targets) {
    for (const [group, { protocols, ...rest }] of Object.entries(groups)) {
      if (group === 'few') continue
      const { method, url } = target
      const reply = await app.inject({ method, url, headers: withKey(target, `sk-${group}`) })
      const allowed = protocols.some((name) => name === target.protocol) && !('thirdParty' in rest)
      t.equal(reply.statusCode, allowed ? 200 : 403, `${group} ${method} ${url}`)
      if (allowed) t.same(reply.json(), { key: group })
      else {
        t.match(
          JSON.stringify(reply.json()),
          protocols.length === 0 || 'thirdParty' in rest ? /It allows: no protocol here/ : new RegExp(`It allows: ${protocols.join(', ')}`)
        )
      }
    }
  }
})

t.test('the list of models is for whoever may use one protocol of its family', async (t) => {
  const { app } = await build(t)
  for (const [group, status] of [['chat', 200], ['embeddings', 200], ['messages', 403], ['gemini', 403], ['nothing', 403]] as const) {
    t.equal((await app.inject({ url: '/v1/models', headers: { authorization: `Bearer sk-${group}` } })).statusCode, status, group)
  }
})

t.test('disabled and expired keys are 401, a wrong version is 400', async (t) => {
  const { app, counted } = await build(t)
  for (const [value, code] of [['sk-off', 'disabled_api_key'], ['sk-old', 'expired_api_key'], ['sk-none', 'invalid_api_key']]) {
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${value}` } })
    t.match([reply.statusCode, reply.json()], [401, { error: { code } }])
    t.ok(counted.includes(`chat_completions ${code}`))
  }
  const versions: [value: string | undefined, status: number][] = [
    ['2023-06-01', 200], ['2026-10-21', 200], ['2023-01-01', 400], ['', 400], [undefined, 400],
  ]
  for (const [value, status] of versions) {
    const headers = { 'x-api-key': 'sk-messages', ...(value !== undefined && { 'anthropic-version': value }) }
    t.equal((await app.inject({ method: 'POST', url: '/v1/messages', headers })).statusCode, status, String(value))
  }
  t.notOk(counted.some((reason) => reason.includes('version')), 'which counts as no failure of a credential')
  const own = await build(t, { versions: { anthropic: ['2030-01-01'] } })
  t.equal(
    (await own.app.inject({
      method: 'POST', url: '/v1/messages', headers: { 'x-api-key': 'sk-messages', 'anthropic-version': '2030-01-01' },
    })).statusCode,
    200
  )
})

t.test('a group that allows some models allows no other name for another', async (t) => {
  const { app } = await build(t)
  const ask = async (url: string): Promise<number> =>
    (await app.inject({ method: 'POST', url, headers: { 'x-goog-api-key': 'sk-few' } })).statusCode
  t.equal(await ask('/v1beta/models/small:generateContent'), 200)
  for (const name of ['models/large', 'models/small%2Fx', 'tunedModels/small', 'models/Small', 'models/models/small']) {
    t.equal(await ask(`/v1beta/${name}:generateContent`), 403, name)
  }
  const told = await app.inject({
    method: 'POST', url: `/v1beta/models/${'x'.repeat(300)}:generateContent`, headers: { 'x-goog-api-key': 'sk-few' },
  })
  t.match(told.json(), { error: { message: `This API key may not use the model ${'x'.repeat(200)}....` } }, 'not at any length')
  const unread = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: 'Bearer sk-few' } })
  t.match([unread.statusCode, unread.json()], [400, { error: { code: 'model_required', param: 'model' } }], 'nobody read the body')
  t.equal((await app.inject({ method: 'GET', url: '/v1/responses/r1', headers: { authorization: 'Bearer sk-few' } })).statusCode, 200)
})

t.test('an image without a model, which the provider would choose, is for groups that may use any', async (t) => {
  const upstream = await startUpstream(t)
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  for (const [group, expected] of [
    [{ protocols: ['images'] }, [200, {}]],
    [{ protocols: ['images'], models: ['cheap'] }, [400, { error: { code: 'model_required', param: 'model' } }]],
    [{ protocols: ['images'], routes: [{ models: ['cheap*'], upstream: 'main' }] }, [400, { error: { code: 'model_required' } }]],
  ] as const) {
    const { app } = await startGateway(t, upstream.url, { groups: { all: group } })
    upstream.queue({ fixture: 'images.json' })
    for (const payload of ['{"prompt":"x"}', '{"model":null,"prompt":"x"}']) {
      const reply = await app.inject({ method: 'POST', url: '/v1/images/generations', headers, payload })
      t.match([reply.statusCode, reply.json()], expected, payload)
    }
  }
  t.equal(upstream.seen.length, 2)
})

t.test('a body cannot name an allowed model in place of the one in the path', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, { groups: { all: { protocols: ['generate_content'], models: ['cheap'] } } })
  for (const payload of ['{"contents":[{"parts":[{"text":"x"}]}]}', '{"":"cheap","model":"cheap","contents":[{"parts":[{"text":"x"}]}]}']) {
    const reply = await app.inject({
      method: 'POST',
      url: '/v1beta/models/costly:generateContent',
      headers: { 'x-goog-api-key': secret, 'content-type': 'application/json' },
      payload,
    })
    t.equal(reply.statusCode, 403)
  }
  t.equal(upstream.seen.length, 0)
})

t.test('a key that expires while it is in memory is refused', async (t) => {
  let expiresAt = Date.now() + 60_000
  const key = { id: 'k', group: 'chat', get expiresAt () { return expiresAt }, disabled: false, limits: {} }
  const { app } = await build(t, { keys: [], store: { find: async () => key, onChange: () => () => {} } })
  const ask = async (): Promise<number> =>
    (await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: 'Bearer x' } })).statusCode
  t.equal(await ask(), 200)
  expiresAt = Date.now() - 1
  t.equal(await ask(), 401)
})

t.test('a key of a host\'s own store whose expiry is no number has expired', async (t) => {
  const times: Record<string, unknown> = { text: '2999-01-01T00:00:00Z', none: undefined, nan: NaN, date: new Date(Date.now() + 60_000) }
  let expiresAt: unknown = null
  const store = { find: async () => Object({ id: 'k', group: 'chat', expiresAt, disabled: false, limits: {} }), onChange: () => () => {} }
  const { app } = await build(t, { keys: [], store, cache: { ttlMs: 0 } })
  for (const [name, status] of [['text', 401], ['none', 401], ['nan', 401], ['date', 200]] as const) {
    expiresAt = times[name]
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: 'Bearer x' } })
    t.equal(reply.statusCode, status, name)
  }
})

t.test('a store tells its changes, and is let go at the end', async (t) => {
  let listener = (_: object): void => {}
  let ended = false
  let disabled = false
  const store = {
    find: async () => ({ id: 'k', group: 'chat', expiresAt: null, disabled, limits: {} }),
    onChange: (given: typeof listener) => { listener = given; return () => { ended = true } },
  }
  const app = Fastify()
  const gateway = joinGateway(app)
  const gauges: Array<() => readonly object[]> = []
  gateway.recorder = { ...gateway.recorder, gauge: (_, read) => { gauges.push(read); return () => { gauges.pop() } } }
  await app.register(auth, { groups, store })
  app.post('/v1/chat/completions', async () => ({}))
  const ask = async (): Promise<number> =>
    (await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: 'Bearer x' } })).statusCode
  t.equal(await ask(), 200)
  t.strictSame(gauges[0]?.(), [{ labels: { kind: 'positive' }, value: 1 }, { labels: { kind: 'negative' }, value: 0 }])
  disabled = true
  t.equal(await ask(), 200)
  listener({ id: 'k' })
  t.equal(await ask(), 401)
  await app.close()
  t.ok(ended)
  t.equal(gauges.length, 0)
})

t.test('a request that is routed again is not asked for its key again', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  let asked = 0
  await app.register(auth, { groups, lookup: () => { asked += 1; return { id: 'k', group: 'chat' } }, cache: { ttlMs: 0 } })
  await app.register(paths)
  app.all('/*', async (request) => ({ key: request.llm?.key?.id }))
  t.same((await app.inject({ method: 'POST', url: '/v1/v1/responses', headers: { authorization: 'Bearer x' } })).json(), { key: 'k' })
  t.equal(asked, 1)
})

t.test('nothing of a secret is in what can be inspected of a request', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(paths)
  await app.register(auth, hostAuth)
  app.all('/*', async (request) => ({
    seen: [request.llm, modelCallOf(request)].map((part) => inspect(part, { depth: 9, showHidden: true }) + JSON.stringify(part)).join(''),
  }))
  for (const [url, headers] of [
    ['/v1/chat/completions', { authorization: `Bearer ${secret}` }], [`/v1beta/models/m:generateContent?key=${secret}`, {}],
  ] as const) {
    const { seen } = (await app.inject({ method: 'POST', url, headers })).json()
    t.match(seen, /ModelRequestView.*ModelCall/s)
    t.notOk(seen.includes(secret), url)
  }
})
