import { hash } from 'node:crypto'
import Fastify from 'fastify'
import t from 'tap'
import { auth, type AuthOptions } from '../../plugins/auth/index.js'
import { build, groups } from './rig.js'

const hashOf = (secret: string): string => `sha256:${hash('sha256', secret, 'hex')}`

t.test('a key by its hash is one by its secret', async (t) => {
  const { app } = await build(t, { keys: [{ id: 'hashed', group: 'chat', hash: hashOf('sk-hashed') }] })
  for (const [key, status] of [['sk-hashed', 200], [hashOf('sk-hashed'), 401], [hashOf('sk-hashed').slice(7), 401]] as const) {
    const headers = { authorization: `Bearer ${key}` }
    t.equal((await app.inject({ method: 'POST', url: '/v1/chat/completions', headers })).statusCode, status, key)
  }
})

t.test('a group may have the least of each limit, and routes', async (t) => {
  const limits = { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1, balance: 0 }
  const app = Fastify()
  t.teardown(() => app.close())
  await t.resolves(async () => await app.register(auth, {
    groups: { g: { protocols: [], limits, routes: [{ models: ['m'], upstream: 'u' }] } },
  }))
})

t.test('a wrong option fails at start and names itself, never a secret', async (t) => {
  const one = { g: { protocols: ['messages'] } }
  const wrong: [options: object, said: RegExp][] = [
    [{}, /option groups is required/],
    [{ groups: { g: { protocols: 'messages' } } }, /groups\.g\.protocols must be a list/],
    [{ groups: { g: { protocols: ['telepathy'] } } }, /groups\.g\.protocols holds "telepathy", which is none of/],
    [{ groups: { g: { protocols: ['messages', undefined] } } }, /groups\.g\.protocols holds undefined, which is none of/],
    [{ groups: { g: { protocols: [], limits: { requestPerMinute: 1 } } } }, /requestPerMinute is not known; did you mean requestsPerMinute/],
    [{ groups: { g: { protocols: [], limits: { balance: 1.5 } } } }, /groups\.g\.limits\.balance must be a whole number/],
    [{ groups: { g: { protocols: [], limits: { balance: -1 } } } }, /groups\.g\.limits\.balance must be a whole number/],
    ...['requestsPerMinute', 'tokensPerMinute', 'concurrency'].map((name): [options: object, said: RegExp] => [
      { groups: { g: { protocols: [], limits: { [name]: 0 } } } }, new RegExp(`groups\\.g\\.limits\\.${name} must be .* at least 1`),
    ]),
    [{ groups: { g: { protocols: [], limits: { budget: [] } } } }, /groups\.g\.limits\.budget is not known; did you mean budgets/],
    [{ groups: { g: { protocols: [], limits: { budgets: 5 } } } }, /groups\.g\.limits\.budgets must be/],
    [{ groups: { g: { protocols: [], thirdparty: false } } }, /groups\.g\.thirdparty is not known/],
    [{ groups: { g: { protocols: [], thirdParty: 'false' } } }, /groups\.g\.thirdParty must be a boolean/],
    [{ groups: { g: { protocols: [], model: ['m'] } } }, /groups\.g\.model is not known/],
    [{ groups: { g: { protocols: [], models: 'm' } } }, /groups\.g\.models must be a list/],
    [{ groups: { g: { protocols: [], models: ['m', 'small-*'] } } }, /groups\.g\.models\[1\] must be the whole name of a model/],
    [{ groups: { g: { protocols: [], limits: null } } }, /groups\.g\.limits must be an object/],
    [{ groups: { g: { protocols: [], onStoreFailure: 'open' } } }, /groups\.g\.onStoreFailure must be closed or local/],
    [{ groups: { g: { protocols: [], routes: {} } } }, /groups\.g\.routes must be a list/],
    [{ groups: { g: { protocols: [], routes: [{ models: [], upstream: 'u' }] } } }, /groups\.g\.routes\[0\]\.models must be a list of names/],
    ...['m', ['m', ''], ['m', 5]].map((models): [options: object, said: RegExp] => [
      { groups: { g: { protocols: [], routes: [{ models, upstream: 'u' }] } } }, /groups\.g\.routes\[0\]\.models must be a list of names/,
    ]),
    [{ groups: { g: { protocols: [], routes: [{ models: ['m'], upstream: 5 }] } } }, /groups\.g\.routes\[0\]\.upstream must be a string/],
    [{ groups: { g: { protocols: [], routes: [{ models: ['m'] }] } } }, /groups\.g\.routes\[0\]\.upstream is required/],
    [{ groups: { g: { protocols: [], models: ['*', 'small-*'] } } }, /groups\.g\.models\[0\] must be the whole name of a model/],
    ...[5, null, ['u']].map((upstream): [options: object, said: RegExp] => [
      { groups: { g: { protocols: [], upstream } } }, /groups\.g\.upstream must be a name, or one for each protocol/,
    ]),
    [{ groups: { g: { protocols: [], upstream: { messages: 5 } } } }, /groups\.g\.upstream must be a name, or one for each protocol/],
    [
      { groups: { g: { protocols: [], upstream: { messages: 'u', responses: 5 } } } }, /groups\.g\.upstream must be a name, or one for each/,
    ],
    [{ groups: { g: { protocols: [], upstream: { telepathy: 'u' } } } }, /groups\.g\.upstream holds "telepathy", which is none of/],
    [{ groups: { g: { protocols: [], labels: 'x' } } }, /groups\.g\.labels must be an object/],
    [{ groups: { g: { protocols: [], labels: { team: 'a,b' } } } }, /groups\.g\.labels\.team must be a text/],
    [{ groups: one, keys: {} }, /option keys must be a list/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', limits: 'x' }] }, /keys\[0\]\.limits must be an object/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', limits: { rpm: 1 } }] }, /keys\[0\]\.limits\.rpm is not known/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', labels: 'x' }] }, /keys\[0\]\.labels must be an object/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', labels: { team: 'a,b' } }] }, /keys\[0\]\.labels\.team must be a text/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', expires: '2999-01-01' }] }, /keys\[0\]\.expires must be an ISO/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', hash: `x${hashOf('canary')}` }] }, /keys\[0\]\.hash must be sha256/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', hash: `${hashOf('canary')}0` }] }, /keys\[0\]\.hash must be sha256/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', expiresAt: 0 }] }, /keys\[0\]\.expiresAt is not known/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', disabled: 'yes' }] }, /keys\[0\]\.disabled must be a boolean/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary\n' }] }, /keys\[0\]\.secret must be visible ASCII/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'can,ary' }] }, /keys\[0\]\.secret must be visible ASCII/],
    [{ groups: one, keys: [{ group: 'g', secret: 'canary' }] }, /keys\[0\]\.id must be a string/],
    [{ groups: one, keys: [{ id: '', group: 'g', secret: 'canary' }] }, /keys\[0\]\.id must be a string/],
    [{ groups: one, keys: [{ id: 'a', group: 'x', secret: 'canary' }] }, /keys\[0\]\.group names x, which is not one of the groups/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'canary', expires: 'soon' }] }, /keys\[0\]\.expires must be an ISO/],
    [{ groups: one, keys: [{ id: 'a', group: 'g' }] }, /keys\[0\]\.secret is undefined: .* environment variable/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'undefined' }] }, /keys\[0\]\.secret is undefined: .* environment variable/],
    [{ groups: one, keys: [{ id: 'a', group: 'g', secret: 'null' }] }, /keys\[0\]\.secret is null: .* environment variable/],
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
    [{ groups: one, store: { find: async () => null } }, /option store has no method onChange/],
    [{ groups: one, store: { keys: {}, balances: {} } }, /option store is a whole state: give its keys instead/],
    [{ groups: one, store: 'x' }, /option store must be an object/],
    [{ groups: [] }, /option groups must be an object/],
    [{ groups: one, conflict: 'last' }, /auth\.conflict must be first or reject/],
    [{ groups: one, unknown: 'x' }, /auth\.unknown must be refuse or leave/],
    [{ groups: one, optionalSources: 'api-key' }, /auth\.optionalSources must be a list/],
    [{ groups: one, optionalSources: ['canary'] }, /auth\.optionalSources holds "canary", which is none of api-key/],
    [{ groups: one, versions: { nobody: [] } }, /auth\.versions holds "nobody"/],
    [{ groups: one, versions: { gemini: undefined, anthropic: '2023-06-01' } }, /auth\.versions\.anthropic must be a list/],
    ...Object.entries({
      max: 1, ttlMs: 0, negativeMax: 1, negativeTtlMs: 0, staleMs: 0, maxLoads: 1, maxLoadsPerSecond: 1,
    }).map(([name, least]): [options: object, said: RegExp] => [
      { groups: one, cache: { [name]: least - 1 } }, new RegExp(`auth\\.cache\\.${name} must be a whole number of at least ${least}`),
    ]),
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
  const unbounded: object = { maxAddresses: undefined }
  let asked = 0
  await app.register(auth, {
    groups, lookup: () => { asked += 1; return { id: 'k', group: 'chat' } }, cache: { ...unset }, failures: { perMinute: 5, ...unbounded },
  })
  app.all('/*', async (request) => ({ key: request.llm?.key?.id }))
  for (let i = 0; i < 2; i += 1) await app.inject({ method: 'POST', url: '/v1/responses', headers: { authorization: 'Bearer x' } })
  t.equal(asked, 1)
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
