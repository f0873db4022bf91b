import { inspect } from 'node:util'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import { auth, type AuthOptions, type GroupOptions } from '../../plugins/auth/index.js'
import { dropCredentials } from '../../plugins/core/carriers.js'
import { errors } from '../../plugins/errors/index.js'
import { gatewayOf, joinGateway } from '../../plugins/core/gateway.js'
import { modelCallOf } from '../../plugins/core/model-call.js'
import { paths } from '../../plugins/paths/index.js'
import { everyProtocol, gatewayOptions, listen, secret, startGateway } from '../helpers/gateway.js'
import { hostAuth, hostSecret, startHost } from '../helpers/host.js'
import { startUpstream } from '../helpers/upstream.js'
import { Wire } from '../helpers/wire.js'
import { upstreams } from '../../plugins/upstreams/index.js'

const groups: Record<string, GroupOptions> = {
  chat: { protocols: ['chat_completions', 'responses', 'images'] },
  messages: { protocols: ['messages'] },
  gemini: { protocols: ['generate_content'] },
  embeddings: { protocols: ['embeddings'] },
  nothing: { protocols: [] },
  own: { protocols: everyProtocol, thirdParty: false },
  few: { protocols: everyProtocol, models: ['small'] },
}

const keys = [
  ...Object.keys(groups).map((group) => ({ id: group, group, secret: `sk-${group}` })),
  { id: 'off', group: 'chat', secret: 'sk-off', disabled: true },
  { id: 'old', group: 'chat', secret: 'sk-old', expires: '2020-01-01T00:00:00Z' },
  {
    id: 'young',
    group: 'chat',
    hash: 'sha256:7a2b8a9cbb0f0f9a2d9cbaf6b1c2b8dfb8b8ab3a0a6fd9b6d43c9d6a7a0b3c1d',
    expires: '2999-01-01T00:00:00Z',
  },
]

interface Rig {
  app: FastifyInstance
  counted: string[]
}

async function build (
  t: { teardown: (close: () => unknown) => unknown }, options: Partial<AuthOptions> = {}, log: string[] = []
): Promise<Rig> {
  const app = Fastify({ logger: { level: 'trace', stream: { write: (line: string) => { log.push(line) } } } })
  t.teardown(() => app.close())
  const counted: string[] = []
  const gateway = joinGateway(app)
  gateway.recorder = {
    ...gateway.recorder,
    authFailed: (protocol, reason) => counted.push(`${protocol} ${reason}`),
    keyLookedUp: (result) => counted.push(result),
  }
  await app.register(paths)
  await app.register(errors)
  await app.register(auth, { groups, keys, ...options })
  app.all('/*', async (request) => ({ key: request.llm?.key?.id ?? null }))
  return { app, counted }
}

interface Target {
  readonly family: 'openai' | 'anthropic' | 'gemini'
  readonly protocol: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  readonly headers?: Record<string, string>
}

const version = { 'anthropic-version': '2023-06-01' }

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

const A = 'sk-all-A'
const B = 'sk-all-B'

/** What stands in a request: name and value in turn, as on the wire, and its query. */
interface Placement {
  readonly raw: readonly string[]
  readonly query?: string
}

type Shape = (name: string, scheme: string) => readonly string[]

const good: Record<string, Shape> = {
  plain: (name, scheme) => [name, scheme + A],
  'another case': (name, scheme) => [name.toUpperCase(), scheme.toUpperCase() + A],
  'more blanks': (name, scheme) => [name, scheme === '' ? A : `Bearer    ${A}`],
}

const bad: Record<string, [shape: Shape, code: string]> = {
  twice: [(name, scheme) => [name, scheme + A, name.toUpperCase(), scheme + A], 'duplicate_api_key'],
  'twice and different': [(name, scheme) => [name, scheme + A, name, scheme + B], 'duplicate_api_key'],
  empty: [(name) => [name, ''], 'missing_api_key'],
  'nothing after the scheme': [(name, scheme) => [name, scheme], 'missing_api_key'],
  comma: [(name, scheme) => [name, `${scheme}${A}, ${B}`], 'malformed_api_key'],
  'a blank inside': [(name, scheme) => [name, `${scheme}a b`], 'malformed_api_key'],
  'not ASCII': [(name, scheme) => [name, `${scheme}\u00e9`], 'malformed_api_key'],
  'too long': [(name, scheme) => [name, scheme + 'x'.repeat(4_097)], 'malformed_api_key'],
  unknown: [(name, scheme) => [name, `${scheme}sk-nobody`], 'invalid_api_key'],
}

const sources: readonly [target: Target, name: string, scheme: string][] = [
  [{ family: 'openai', protocol: 'chat_completions', method: 'POST', url: '/v1/chat/completions' }, 'authorization', 'bearer '],
  [{ family: 'openai', protocol: 'chat_completions', method: 'POST', url: '/v1/chat/completions' }, 'api-key', ''],
  [{ family: 'anthropic', protocol: 'messages', method: 'POST', url: '/v1/messages', headers: version }, 'x-api-key', ''],
  [{ family: 'anthropic', protocol: 'messages', method: 'POST', url: '/v1/messages', headers: version }, 'authorization', 'bearer '],
  [{ family: 'gemini', protocol: 'generate_content', method: 'POST', url: '/v1beta/models/m:generateContent' }, 'x-goog-api-key', ''],
  [{ family: 'gemini', protocol: 'generate_content', method: 'POST', url: '/v1beta/models/m:generateContent' }, 'authorization', 'bearer '],
]

async function rawStatus (
  wire: Wire, { method, url, headers = {} }: Target, { raw, query = '' }: Placement
): Promise<[status: number, code: string]> {
  const lines = [`${method} ${url}${query} HTTP/1.1`, 'host: h']
  for (let i = 0; i < raw.length; i += 2) lines.push(`${raw[i]}: ${raw[i + 1]}`)
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
  wire.send(Buffer.from([...lines, '', ''].join('\r\n'), 'latin1'))
  const { status, body } = await wire.reply()
  const { error } = JSON.parse(body)
  return [status, String(error?.details?.error_code ?? error?.details?.[0]?.reason ?? error?.code ?? '').toLowerCase()]
}

t.test('every place of a credential in every shape, as its bytes arrive', async (t) => {
  const { app } = await build(t, {
    groups: { all: { protocols: everyProtocol } },
    keys: [{ id: 'a', group: 'all', secret: A }, { id: 'b', group: 'all', secret: B }],
    optionalSources: ['api-key', 'gemini-bearer'],
  })
  const wire = new Wire(await listen(app))
  t.teardown(() => wire.destroy())
  let tried = 0
  const ask = async (target: Target, placement: Placement, expected: [number, string], name: string): Promise<void> => {
    tried += 1
    t.strictSame(await rawStatus(wire, target, placement), expected, `${target.family} ${name}`)
  }
  for (const [target, name, scheme] of sources) {
    for (const [what, shape] of Object.entries(good)) await ask(target, { raw: shape(name, scheme) }, [200, ''], `${name} ${what}`)
    for (const [what, [shape, code]] of Object.entries(bad)) await ask(target, { raw: shape(name, scheme) }, [401, code], `${name} ${what}`)
    if (scheme !== '') {
      for (const value of [A, `Basic ${A}`, `Digest ${A}`, ` ${A}`, `Bearer\t${A}`, 'Beare', `Bearer,${A}`]) {
        await ask(target, { raw: [name, value] }, [401, 'malformed_api_key'], `${name} ${value}`)
      }
    }
    await ask(target, { raw: [] }, [401, 'missing_api_key'], 'nothing')
    await ask(
      target,
      { raw: [name.replaceAll('-', '_').replace('authorization', 'authorisation'), scheme + A] },
      [401, 'missing_api_key'],
      'a name that is not quite it'
    )
    await ask(
      target,
      { raw: ['cookie', `authorization=Bearer ${A}`, 'proxy-authorization', `Bearer ${A}`] },
      [401, 'missing_api_key'],
      'carriers of nobody'
    )
  }
  const [[openai], , [anthropic], , [gemini]] = sources as [[Target], unknown, [Target], unknown, [Target]]
  const both: [target: Target, first: string[], second: string[]][] = [
    [openai, ['authorization', 'Bearer %'], ['api-key', '%']],
    [anthropic, ['x-api-key', '%'], ['authorization', 'Bearer %']],
    [gemini, ['x-goog-api-key', '%'], ['authorization', 'Bearer %']],
  ]
  for (const [target, first, second] of both) {
    const at = (carrier: string[], value: string): string[] => carrier.map((text) => text.replace('%', value))
    await ask(target, { raw: [...at(second, A), ...at(first, A)] }, [200, ''], 'the same in both')
    await ask(target, { raw: [...at(second, B), ...at(first, A)] }, [200, ''], 'two: the first source wins')
    await ask(
      target, { raw: [...at(second, A), ...at(first, 'sk-nobody')] }, [401, 'invalid_api_key'], 'no second try after an unknown one'
    )
    await ask(target, { raw: [...at(second, A), ...at(first, 'a b')] }, [401, 'malformed_api_key'], 'no second try after a malformed one')
    await ask(target, { raw: [...at(first, A), ...at(second, A), ...at(second, A)] }, [401, 'duplicate_api_key'], 'the second one twice')
    await ask(target, { raw: [...at(first, ''), ...at(second, A)] }, [200, ''], 'the first one empty')
    await ask(target, { raw: [...at(first, A), ...at(second, '')] }, [200, ''], 'the second one empty')
  }
  const queries: [query: string, status: number, code: string][] = [
    [`?key=${A}`, 200, ''], [`?key=${encodeURIComponent(A).replace('s', '%73')}`, 200, ''], [`?k%65y=${A}&alt=sse`, 200, ''],
    [`?key=${A}&key=${A}`, 401, 'duplicate_api_key'], ['?key=', 401, 'missing_api_key'], ['?key', 401, 'missing_api_key'],
    [`?key=${A},${B}`, 401, 'malformed_api_key'], ['?key=%zz', 401, 'invalid_api_key'], [`?KEY=${A}`, 401, 'missing_api_key'],
    [`?key=%2573${A}`, 401, 'invalid_api_key'],
  ]
  for (const [query, status, code] of queries) await ask(gemini, { raw: [], query }, [status, code], query)
  await ask(gemini, { raw: ['x-goog-api-key', A], query: `?key=${B}` }, [200, ''], 'header and query')
  await ask(gemini, { raw: ['x-goog-api-key', ''], query: `?key=${A}` }, [200, ''], 'empty header and query')
  for (const target of [openai, anthropic]) {
    await ask(target, { raw: ['authorization', `Bearer ${A}`], query: `?key=${A}` }, [400, 'key_in_query'], '?key= of another family')
  }
  t.ok(tried > 100, `${tried} placements`)
})

t.test('optional sources are off by default', async (t) => {
  const { app } = await build(t)
  const azure = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { 'api-key': 'sk-chat' } })
  t.match([azure.statusCode, azure.json()], [401, { error: { code: 'missing_api_key', message: /authorization: Bearer KEY/ } }])
  const bearer = await app.inject({
    method: 'POST', url: '/v1beta/models/m:generateContent', headers: { authorization: 'Bearer sk-gemini' },
  })
  t.match([bearer.statusCode, bearer.json()], [401, { error: { status: 'UNAUTHENTICATED', message: /x-goog-api-key: KEY/ } }])
})

t.test('two different keys are counted, or rejected', async (t) => {
  const headers = { ...version, 'x-api-key': 'sk-messages', authorization: 'Bearer sk-chat' }
  const first = await build(t)
  t.same((await first.app.inject({ method: 'POST', url: '/v1/messages', headers })).json(), { key: 'messages' })
  t.strictSame(first.counted, ['messages conflict', 'hit'])
  const strict = await build(t, { conflict: 'reject' })
  t.equal((await strict.app.inject({ method: 'POST', url: '/v1/messages', headers })).statusCode, 401)
  t.equal(
    (await strict.app.inject({
      method: 'POST', url: '/v1/messages', headers: { ...headers, authorization: 'Bearer sk-messages' },
    })).statusCode,
    200
  )
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

t.test('the start warns where nobody has a key, and only there', async (t) => {
  const warned = async (options: Partial<AuthOptions>): Promise<boolean> => {
    const log: string[] = []
    await (await build(t, options, log)).app.ready()
    return log.some((line) => /"level":40.*nobody has a key here, .*give the gateway keys, a store or a lookup/.test(line))
  }
  t.equal(await warned({ keys: [] }), true)
  t.equal(await warned({}), false)
  t.equal(await warned({ keys: [], lookup: () => null }), false)
  t.equal(await warned({ keys: [], store: { find: async () => null, onChange: () => () => {} } }), false)
})

t.test('a host\'s lookup: at once, later, unknown, in a group that is gone, and failing', async (t) => {
  const answers: Record<string, () => unknown> = {
    'now-1': () => ({ id: 'now', group: 'chat' }),
    'later-1': async () => ({ id: 'later', group: 'chat', limits: {}, disabled: false, expiresAt: Date.now() + 60_000 }),
    'null-1': () => null,
    'undefined-1': () => undefined,
    'gone-1': () => ({ id: 'gone', group: 'unheard-of' }),
    'throws-canary': () => { throw new Error('no row for throws-canary') },
    'nothing-canary': async () => await Promise.reject(Object.create(null)),
    'rejects-canary/+': async () => { throw new Error(`GET /?k=${encodeURIComponent('rejects-canary/+')} ${btoa('rejects-canary/+')}`) },
  }
  let asked = 0
  const log: string[] = []
  const lookup = (credential: string): never => { asked += 1; return answers[credential]?.() as never }
  const { app, counted } = await build(t, { keys: [], lookup }, log)
  const ask = async (value: string): Promise<[number, unknown]> => {
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${value}` } })
    if (reply.statusCode === 503) t.match(reply.headers, { 'retry-after': '1' })
    return [reply.statusCode, reply.json().error?.code ?? reply.json().key]
  }
  const expected: [value: string, status: number, code: string][] = [
    ['now-1', 200, 'now'], ['later-1', 200, 'later'], ['null-1', 401, 'invalid_api_key'], ['undefined-1', 401, 'invalid_api_key'],
    ['gone-1', 403, 'access_denied'], ['throws-canary', 503, 'key_store_unavailable'], ['nothing-canary', 503, 'key_store_unavailable'],
    ['rejects-canary/+', 503, 'key_store_unavailable'],
  ]
  for (const row of expected) t.strictSame([row[0], ...await ask(row[0])], row)
  const before = asked
  for (const [value, ...rest] of expected.slice(0, 5)) t.strictSame(await ask(value), rest, `${value} from memory`)
  t.equal(asked, before)
  app.llm.invalidateKeys({ id: 'now' })
  await ask('now-1')
  t.equal(asked, before + 1)
  t.ok(counted.includes('negative_hit'))
  t.notMatch(log.join(''), new RegExp(`canary|${btoa('rejects-canary/+')}`))
  t.match(log.join(''), /no row for \[key\]/)
})

t.test('a host\'s lookup that says nothing clear opens nothing', async (t) => {
  const fields: Record<string, [found: unknown, status: number]> = {
    'a row with more columns, and null for nothing': [
      { id: 'a', group: 'chat', disabled: null, expiresAt: null, limits: null, name: 'x' }, 200,
    ],
    'a number as the database writes it': [{ id: 'a', group: 'chat', expiresAt: String(Date.now() + 60_000) }, 200],
    'a date': [{ id: 'a', group: 'chat', expiresAt: new Date(Date.now() + 60_000) }, 200],
    'a date that has been': [{ id: 'a', group: 'chat', expiresAt: new Date(0) }, 401],
    '1 for disabled': [{ id: 'a', group: 'chat', disabled: 1 }, 401],
    'false for none': [false, 401],
    'true for some': [true, 503],
    'a group without a key': [{ group: 'chat' }, 503],
    'an empty id': [{ id: '', group: 'chat' }, 503],
    'a key without a group': [{ id: 'a' }, 503],
    'a date as text': [{ id: 'a', group: 'chat', expiresAt: '2020-01-01T00:00:00Z' }, 503],
    'no number': [{ id: 'a', group: 'chat', expiresAt: NaN }, 503],
    'a limit as text': [{ id: 'a', group: 'chat', limits: { balance: '5' } }, 503],
    'a limit of another name': [{ id: 'a', group: 'chat', limits: { rpm: 5 } }, 503],
  }
  const log: string[] = []
  const { app } = await build(t, { keys: [], lookup: (name) => fields[decodeURIComponent(name)]?.[0] as never }, log)
  for (const [name, [, status]] of Object.entries(fields)) {
    const reply = await app.inject({
      method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${encodeURIComponent(name)}` },
    })
    t.equal(reply.statusCode, status, name)
  }
  t.match(log.join(''), /lookup\(\)\.limits\.balance must be a whole number/)
})

t.test('a lookup that never answers is one that failed', async (t) => {
  let hangs = false
  const lookup = async (): Promise<{ id: string, group: string }> => hangs ? await new Promise(() => {}) : { id: 'a', group: 'chat' }
  const { app } = await build(t, { keys: [], lookup, lookupTimeoutMs: 5, cache: { ttlMs: 0, maxLoads: 1 } })
  // A timer of the gateway's keeps no process alive.
  await listen(app)
  const ask = async (name: string): Promise<number> =>
    (await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${name}` } })).statusCode
  t.equal(await ask('old'), 200)
  hangs = true
  t.equal(await ask('old'), 200, 'a known key is served while the table fails')
  t.equal(await ask('new'), 503)
  hangs = false
  t.equal(await ask('new'), 200, 'and nobody stands in the way of the next')
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

t.test('a caller that leaves while its key is looked up is not served', async (t) => {
  let answer = (_: null): void => {}
  const asked = new Promise<void>((resolve) => {
    const lookup = async (): Promise<null> => { resolve(); return await new Promise((resolve) => { answer = resolve }) }
    options.lookup = lookup
  })
  const { app } = await build(t, { keys: [], lookup: async () => await options.lookup() })
  let settled = (_: unknown): void => {}
  const done = new Promise<unknown>((resolve) => { settled = resolve })
  gatewayOf(app).onSettled((llm) => settled(llm))
  const wire = new Wire(await listen(app))
  wire.send('GET /v1/responses/r1 HTTP/1.1\r\nhost: h\r\nauthorization: Bearer x\r\n\r\n')
  await asked
  wire.destroy()
  t.match(await done, { outcome: 'client_abort', status: 0 })
  answer(null)
  await new Promise(setImmediate)
  t.match(await done, { errorCode: null })
})

const options: { lookup: () => Promise<null> } = { lookup: async () => null }

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

t.test('no carrier of a caller reaches a mount of the host, also without the paths plugin', async (t) => {
  const upstream = await startUpstream(t)
  for (const adapted of [false, true]) {
    const app = await startHost(t, upstream.url, { paths: false, adapted })
    const carriers = {
      cookie: 'canary',
      'x-api-key': 'canary',
      'api-key': 'canary',
      x_api_key: 'canary',
      'proxy-authorization': 'canary',
      'x-goog-api-key': secret,
      connection: 'authorization, x-goog-api-key',
    }
    const reply = await app.inject({
      method: 'POST',
      url: `/v1beta/models/m:generateContent?alt=json&key=${secret}`,
      headers: { ...carriers, 'content-type': 'application/json' },
      payload: '{}',
    })
    t.equal(reply.statusCode, 200)
    const seen = await upstream.requests.next()
    t.equal(seen.url, '/v1beta/models/m:generateContent?alt=json')
    t.notMatch(seen.rawHeaders.join(), new RegExp(`canary|${secret}`))
    t.equal(seen.headers.authorization, `Bearer ${hostSecret}`)
  }
})

t.test('what a mount gets holds neither a carrier nor a list of headers that the mount is to lose', async (t) => {
  const headers = { accept: '*/*', authorization: 'a', x_goog_api_key: 'b', connection: 'authorization', expect: '100-continue' }
  dropCredentials(headers)
  t.strictSame({ ...headers }, { accept: '*/*' })
})

t.test('what a mount serves beside the endpoints is refused, or left to it', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: { ok: true } })
  const status = async (app: FastifyInstance, url: string): Promise<number> => (await app.inject({ method: 'GET', url })).statusCode
  const strict = await startHost(t, upstream.url, { before: (app) => { app.get('/v1/users/:id', async () => ({})) } })
  t.strictSame(
    await Promise.all(['/v1/files', '/v1/files', '/v1', '/v1/', '/v1/users/7', '/v1alpha/x'].map((url) => status(strict, url))),
    [404, 404, 404, 404, 200, 404]
  )
  t.equal(upstream.seen.length, 0)
  t.equal(await status(await startHost(t, upstream.url, { auth: { unknown: 'leave' } }), '/v1/files'), 200)
  const beside = await startHost(t, upstream.url, { mounts: ['/'], before: (app) => { app.get('/:version/*', async () => ({})) } })
  t.equal(await status(beside, '/v1/users'), 404, 'a parameter may stand for the version')
  const own = await startHost(t, upstream.url, { mounts: ['/'] })
  const { forward } = await import('../../plugins/forward/index.js')
  await own.register(upstreams, { upstreams: { main: { url: upstream.url } } })
  await own.register(forward)
  t.equal(await status(own, '/v1/users'), 200, 'model requests have routes of their own: the mount is the host\'s')
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

t.test('a wrong option fails at start and names itself, never a secret', async (t) => {
  const one = { g: { protocols: ['messages'] } }
  const wrong: [options: object, said: RegExp][] = [
    [{}, /option groups is required/],
    [{ groups: { g: { protocols: 'messages' } } }, /groups\.g\.protocols must be a list/],
    [{ groups: { g: { protocols: ['telepathy'] } } }, /groups\.g\.protocols holds "telepathy", which is none of/],
    [{ groups: { g: { protocols: [], limits: { requestPerMinute: 1 } } } }, /groups\.g\.limits\.requestPerMinute is not known/],
    [{ groups: { g: { protocols: [], limits: { balance: 1.5 } } } }, /groups\.g\.limits\.balance must be a whole number/],
    [{ groups: { g: { protocols: [], limits: { balance: -1 } } } }, /groups\.g\.limits\.balance must be a whole number/],
    [{ groups: { g: { protocols: [], thirdparty: false } } }, /groups\.g\.thirdparty is not known/],
    [{ groups: { g: { protocols: [], thirdParty: 'false' } } }, /groups\.g\.thirdParty must be a boolean/],
    [{ groups: { g: { protocols: [], model: ['m'] } } }, /groups\.g\.model is not known/],
    [{ groups: { g: { protocols: [], models: 'm' } } }, /groups\.g\.models must be a list/],
    [{ groups: { g: { protocols: [], limits: null } } }, /groups\.g\.limits must be an object/],
    [{ groups: { g: { protocols: [], onStoreFailure: 'open' } } }, /groups\.g\.onStoreFailure must be closed or local/],
    [{ groups: { g: { protocols: [], routes: {} } } }, /groups\.g\.routes must be a list/],
    [{ groups: { g: { protocols: [], routes: [{ models: [], upstream: 'u' }] } } }, /groups\.g\.routes\[0\]\.models must be a list of names/],
    [{ groups: { g: { protocols: [], routes: [{ models: ['m'] }] } } }, /groups\.g\.routes\[0\]\.upstream is required/],
    [{ groups: one, keys: {} }, /option keys must be a list/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', expiresAt: 0 }] }, /keys\[0\]\.expiresAt is not known/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', disabled: 'yes' }] }, /keys\[0\]\.disabled must be a boolean/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary\n' }] }, /keys\[0\]\.secret must be visible ASCII/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'can,ary' }] }, /keys\[0\]\.secret must be visible ASCII/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary'.repeat(700) }] }, /keys\[0\]\.secret must be visible ASCII/],
    [{ groups: one, keys: [{ group: 'g', secret: 'canary' }] }, /keys\[0\]\.id must be a string/],
    [{ groups: one, keys: [{ id: '', group: 'g', secret: 'canary' }] }, /keys\[0\]\.id must be a string/],
    [{ groups: one, keys: [{ id: 'a', group: 'x', secret: 'canary' }] }, /keys\[0\]\.group names x, which is not one of the groups/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', expires: 'soon' }] }, /keys\[0\]\.expires must be an ISO/],
    [{ groups: one, keys: [{ id: 'a', group: 'g' }] }, /keys\[0\]\.secret is undefined: .* environment variable/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: '' }] }, /keys\[0\]\.secret is empty: .* environment variable/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 5 }] }, /keys\[0\]\.secret must be visible ASCII/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', hash: 'md5:canary' }] }, /keys\[0\]\.hash must be sha256/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', hash: 'sha256:' }] }, /keys\[0\]\.hash cannot stand beside/],
    [
      { groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary' }, { id: 'a', group: 'g', secret: 'canary2' }] },
      /keys\[1\]\.id is there twice/,
    ],
    [
      { groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary' }, { id: 'b', group: 'g', secret: 'canary' }] },
      /keys\[1\] has the secret of another key/,
    ],
    [{ groups: one, lookup: () => null, store: {} }, /option lookup cannot stand beside a store/],
    [{ groups: one, store: { keys: {} } }, /option store has no method find/],
    [{ groups: one, store: { keys: {}, balances: {} } }, /option store is a whole state: give it the keys of that/],
    [{ groups: one, store: 'x' }, /option store must be an object/],
    [{ groups: [] }, /option groups must be an object/],
    [{ groups: one, conflict: 'last' }, /auth\.conflict must be first or reject/],
    [{ groups: one, unknown: 'x' }, /auth\.unknown must be refuse or leave/],
    [{ groups: one, optionalSources: 'api-key' }, /auth\.optionalSources must be a list/],
    [{ groups: one, optionalSources: ['canary'] }, /auth\.optionalSources holds "canary", which is none of api-key/],
    [{ groups: one, versions: { nobody: [] } }, /auth\.versions holds "nobody"/],
    [{ groups: one, versions: { gemini: undefined, anthropic: '2023-06-01' } }, /auth\.versions\.anthropic must be a list/],
    [{ groups: one, cache: { ttlMs: -1 } }, /auth\.cache\.ttlMs must be a whole number of at least 0/],
    [{ groups: one, cache: { max: 0 } }, /auth\.cache\.max must be a whole number of at least 1/],
    [{ groups: one, cache: [] }, /auth\.cache must be an object/],
    [{ groups: one, lookup: 'x' }, /option lookup must be a function/],
    [{ groups: one, lookupTimeoutMs: 0 }, /auth\.lookupTimeoutMs must be a whole number of at least 1/],
  ]
  for (const [given, said] of wrong) {
    const app = Fastify()
    await t.rejects(async () => await app.register(auth, given as AuthOptions), { code: 'LLM_GATEWAY_OPTION', message: said }, String(said))
    await app.close()
  }
})

t.test('an option that is undefined has its default', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const unset: object = {
    max: undefined, ttlMs: undefined, negativeMax: undefined, staleMs: undefined, maxLoads: undefined, maxLoadsPerSecond: undefined,
  }
  let asked = 0
  await app.register(auth, { groups, lookup: () => { asked += 1; return { id: 'k', group: 'chat' } }, cache: { ...unset } })
  app.all('/*', async (request) => ({ key: request.llm?.key?.id }))
  for (let i = 0; i < 2; i += 1) await app.inject({ method: 'POST', url: '/v1/responses', headers: { authorization: 'Bearer x' } })
  t.equal(asked, 1)
})

t.test('a mount that relies on the gateway and would ask nobody for a key fails the start', async (t) => {
  const cases: [prefix: string, mount: string, starts: boolean][] = [
    ['', '/v1', true],
    ['', '/v1/files', true],
    ['', '/', true],
    ['', '/:version', true],
    ['', '/openai', false],
    ['', '/:tenant/v1', false],
    ['/llm', '/llm', true],
    ['/llm', '/llm/v1beta', true],
    ['/llm', '/', true],
    ['/llm', '/v1', false],
  ]
  for (const [prefix, mount, starts] of cases) {
    const app = await startHost(t, 'http://127.0.0.1:9', { mounts: [mount], paths: { prefix }, adapted: true })
    const ready = async (): Promise<unknown> => await app.ready()
    if (starts) await t.resolves(ready, `${mount} with prefix ${prefix}`)
    else {
      await t.rejects(
        ready, { code: 'LLM_GATEWAY_OPTION', message: `option prefix must be what stands before the version below ${mount}/*` }, mount
      )
    }
    const plain = await startHost(t, 'http://127.0.0.1:9', { mounts: [mount], paths: { prefix } })
    await t.resolves(async () => await plain.ready(), 'a mount as it stands is the host\'s own business')
  }
})

t.test('in a scope with a prefix the endpoints stand below it, and nothing there is unguarded', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: { ok: true } })
  const { default: httpProxy } = await import('@fastify/http-proxy')
  const { default: llmGateway } = await import('../../plugins/index.js')
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
  const { default: llmGateway } = await import('../../plugins/index.js')
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
