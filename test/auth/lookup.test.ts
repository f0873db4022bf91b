import t from 'tap'
import { listen, secret, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { StoreDownError } from '../../plugins/core/balances/store-down.js'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { Wire } from '../helpers/wire.js'
import { build } from './rig.js'

t.test('a key that a host looked up brings its labels', async (t) => {
  const upstream = await startUpstream(t)
  const lookup = async (credential: string) => credential === secret ? { id: 'a', group: 'all', labels: { team: 'search' } } : null
  const { app, settled } = await startGateway(t, upstream.url, {
    groups: { all: { protocols: ['messages'], upstream: 'main' } }, keys: [], lookup,
  })
  const headers = { 'x-api-key': secret, 'anthropic-version': '2023-06-01', 'content-type': 'application/json' }
  const payload = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] }
  t.equal((await app.inject({ method: 'POST', url: '/v1/messages', headers, payload })).statusCode, 200)
  t.strictSame((await settled.next()).auth.key?.labels, { team: 'search' })
})

const options: { lookup: () => Promise<null> } = { lookup: async () => null }

t.test('a host\'s lookup: at once, later, unknown, in a group that is gone, and failing', async (t) => {
  // Written otherwise in an address, and in both kinds of base64.
  const spelled = 'rejects-canary/~~~'
  const answers: Record<string, () => unknown> = {
    'now-1': () => ({ id: 'now', group: 'chat' }),
    'later-1': async () => ({ id: 'later', group: 'chat', limits: {}, disabled: false, expiresAt: Date.now() + 60_000 }),
    'null-1': () => null,
    'undefined-1': () => undefined,
    'gone-1': () => ({ id: 'gone', group: 'unheard-of' }),
    'throws-canary': () => { throw new Error('no row for throws-canary') },
    'down-canary': async () => { throw new StoreDownError('failed', { cause: new Error('READONLY for down-canary') }) },
    'nothing-canary': async () => await Promise.reject(Object.create(null)),
    [spelled]: async () => {
      const base64url = Buffer.from(spelled).toString('base64url')
      throw new Error(`GET /?k=${encodeURIComponent(spelled)} ${spelled} ${btoa(spelled)} ${base64url}`)
    },
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
    [spelled, 503, 'key_store_unavailable'], ['down-canary', 503, 'key_store_unavailable'],
  ]
  for (const row of expected) t.strictSame([row[0], ...await ask(row[0])], row)
  const before = asked
  for (const [value, ...rest] of expected.slice(0, 5)) t.strictSame(await ask(value), rest, `${value} from memory`)
  t.equal(asked, before)
  app.llm.invalidateKeys({ id: 'now' })
  await ask('now-1')
  t.equal(asked, before + 1)
  for (const change of [undefined, 'now', {}, { id: undefined }, { key: 'now' }, { id: 5 }, { group: '' }]) {
    const told = { code: 'LLM_GATEWAY_OPTION', message: /invalidateKeys must name an id, a group or a digest/ }
    t.throws(() => app.llm.invalidateKeys(change as never), told, JSON.stringify(change))
  }
  t.doesNotThrow(() => app.llm.invalidateKeys({ missed: true }))
  t.ok(counted.includes('negative_hit'))
  t.notMatch(log.join(''), new RegExp(`canary|${btoa('rejects-canary/')}`))
  t.match(log.join(''), /no row for \[key\]/)
  t.match(log.join(''), /the state store failed: READONLY for \[key\]/)
})

t.test('a lookup may have more time than a timer can be set to', async (t) => {
  const lookup = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    return { id: 'slow', group: 'chat' }
  }
  const { app } = await build(t, { keys: [], lookup, lookupTimeoutMs: 2 ** 31 })
  const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: 'Bearer slow-1' } })
  t.equal(reply.statusCode, 200)
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
    'a bit of MySQL for disabled': [{ id: 'a', group: 'chat', disabled: Buffer.from([1]) }, 401],
    'a bit of MySQL for not disabled': [{ id: 'a', group: 'chat', disabled: Buffer.from([0]) }, 200],
    'a bit of PostgreSQL for not disabled': [{ id: 'a', group: 'chat', disabled: '0', revoked: '0' }, 200],
    'another name for disabled, and a text for no': [{ id: 'a', group: 'chat', is_revoked: 'f', blocked: Buffer.from([0]) }, 200],
    'false for none': [false, 401],
    'true for some': [true, 503],
    'a group without a key': [{ group: 'chat' }, 503],
    'an empty id': [{ id: '', group: 'chat' }, 503],
    'a key without a group': [{ id: 'a' }, 503],
    'a date as text': [{ id: 'a', group: 'chat', expiresAt: '2020-01-01T00:00:00Z' }, 503],
    'no number': [{ id: 'a', group: 'chat', expiresAt: NaN }, 503],
    'a limit as text': [{ id: 'a', group: 'chat', limits: { balance: '5' } }, 503],
    'a label with a comma': [{ id: 'a', group: 'chat', labels: { team: 'a,b' } }, 503],
    'null for labels': [{ id: 'a', group: 'chat', labels: null }, 200],
    'a limit of another name': [{ id: 'a', group: 'chat', limits: { rpm: 5 } }, 503],
    'a number for limits': [{ id: 'a', group: 'chat', limits: 5 }, 503],
    'an expiry as keys of the file have it': [{ id: 'a', group: 'chat', expires: '2020-01-01T00:00:00Z' }, 503],
    'an expiry as a column has it': [{ id: 'a', group: 'chat', expires_at: new Date(0) }, 503],
    'an expiry as a token has it': [{ id: 'a', group: 'chat', exp: 1, disabled: false }, 503],
    'a column of expiries without one': [{ id: 'a', group: 'chat', expires_at: null, expired: false, experiment: 'x' }, 200],
    'a column about expiries': [{ id: 'a', group: 'chat', expiry_notified: true, expiration_policy: 'none' }, 200],
    'a column of expiries, and none meant': [{ id: 'a', group: 'chat', expires_at: new Date(0), expiresAt: null }, 200],
    'a row whose columns are in its prototype': [Object.create({ id: 'a', group: 'chat', get expiry () { return '2020-01-01' } }), 503],
    'a row with methods': [
      Object.create({ id: 'a', group: 'chat', expire () {}, disable () {}, isRevoked () {} }), 200,
    ],
    'a row without a prototype': [Object.assign(Object.create(null), { id: 'a', group: 'chat' }), 200],
    'another name for disabled': [{ id: 'a', group: 'chat', expiresAt: null, revoked_at: new Date(0) }, 503],
    'the opposite of disabled': [{ id: 'a', group: 'chat', enabled: false }, 503],
    'the opposite of disabled as a number': [{ id: 'a', group: 'chat', is_active: 0 }, 503],
    'the opposite of disabled as MySQL writes a bit': [{ id: 'a', group: 'chat', Enabled: Buffer.from([0]) }, 503],
    'the opposite of disabled as PostgreSQL writes a bit': [{ id: 'a', group: 'chat', isActive: '0' }, 503],
    'the opposite of disabled as a text': [{ id: 'a', group: 'chat', enabled: 'No' }, 503],
    'the opposite of disabled as another text': [{ id: 'a', group: 'chat', enabled: 'OFF' }, 503],
    'the opposite of its opposite': [{ id: 'a', group: 'chat', inactive: false, enabled: Buffer.from([1]), active: 'on' }, 200],
    'an expiry in seconds': [{ id: 'a', group: 'chat', expiresAt: 1_900_000_000 }, 503],
    'an expiry in seconds as text': [{ id: 'a', group: 'chat', expiresAt: '1900000000' }, 503],
    'the opposite of disabled, and all is well': [{ id: 'a', group: 'chat', isActive: true, enabled: null, active: 1 }, 200],
    'columns that only begin alike': [
      { id: 'a', group: 'chat', disabled_tools: [], blocked_models: 'm', disableLogs: true, suspended_uses: 2, activeUsers: 0 }, 200,
    ],
    'another name for disabled, and disabled itself': [{ id: 'a', group: 'chat', is_disabled: 1, disabled: 1 }, 401],
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
  t.match(log.join(''), /lookup\(\)\.group must be a string/)
  t.match(log.join(''), /lookup\(\)\.expiresAt must be milliseconds/)
  t.match(log.join(''), /lookup\(\)\.expires_at is not read: give expiresAt/)
})

t.test('each group that no one configured is told once, without the key, and of any number a hundred', async (t) => {
  const log: string[] = []
  const { app } = await build(t, { keys: [], lookup: (name) => ({ id: 'an-id', group: `gone-${name.slice(4)}` }) }, log)
  const told = (): unknown[] => log.map((line) => JSON.parse(line)).filter(({ level }) => level === 40).map(({ group }) => group)
  const ask = async (name: string): Promise<number> =>
    (await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${name}` } })).statusCode
  for (const name of ['key-a', 'key-a', 'kex-a', `key-${'b'.repeat(300)}`]) t.equal(await ask(name), 403)
  t.strictSame(told(), ['gone-a', `gone-${'b'.repeat(195)}...`])
  t.notMatch(log.join(''), /ke[yx]-a|an-id/)
  for (let i = 0; i < 110; i++) await ask(`key-${i}`)
  t.equal(told().length, 100)
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

t.test('a caller that leaves while its key is looked up is not served', async (t) => {
  let answer = (_: null): void => {}
  const asked = new Promise<void>((resolve) => {
    const lookup = async (): Promise<null> => { resolve(); return await new Promise((resolve) => { answer = resolve }) }
    options.lookup = lookup
  })
  const { app } = await build(t, { keys: [], lookup: async () => await options.lookup() })
  let settled = (_: unknown): void => {}
  const done = new Promise<unknown>((resolve) => { settled = resolve })
  gatewayOf(app).settlement.onSettled((llm) => settled(llm))
  const wire = new Wire(await listen(app))
  wire.send('GET /v1/responses/r1 HTTP/1.1\r\nhost: h\r\nauthorization: Bearer x\r\n\r\n')
  await asked
  wire.destroy()
  t.match(await done, { outcome: 'client_abort', status: 0 })
  answer(null)
  await new Promise(setImmediate)
  t.match(await done, { errorCode: null })
})

t.test('a host\'s store in JavaScript may answer at once', async (t) => {
  const store = { find: (() => null) as never, onChange: () => () => {} }
  const { app } = await build(t, { keys: [], store })
  const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: 'Bearer sk-0123456789' } })
  t.match([reply.statusCode, reply.json()], [401, { error: { code: 'invalid_api_key' } }])
})

t.test('a key of the options is not looked up anywhere else, and where there is no table, no key is', async (t) => {
  let asked = 0
  const lookup = async (): Promise<null> => { asked += 1; return null }
  const ask = async (options: Parameters<typeof build>[1], value: string): Promise<unknown[]> => {
    const { app, counted } = await build(t, options)
    const headers = { authorization: `Bearer ${value}` }
    const statuses = []
    for (let i = 0; i < 2; i += 1) {
      statuses.push((await app.inject({ method: 'POST', url: '/v1/chat/completions', headers })).statusCode)
    }
    return [statuses, counted.filter((result) => !result.includes(' '))]
  }
  t.strictSame(await ask({ lookup }, 'sk-chat'), [[200, 200], ['hit', 'hit']])
  t.equal(asked, 0)
  t.strictSame(await ask({}, 'wrong'), [[401, 401], ['miss', 'miss']])
  t.strictSame(await ask({ lookup }, 'wrong'), [[401, 401], ['miss', 'negative_hit']])
  t.equal(asked, 1)
})
