/** Who guesses keys is slowed down, and nobody else. */
import { EventEmitter, once } from 'node:events'
import { connect, constants } from 'node:http2'
import cors from '@fastify/cors'
import helmet from '@fastify/helmet'
import rateLimit from '@fastify/rate-limit'
import Fastify, { type FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import { FailureBudget, networkOf } from '../../plugins/auth/failure-budget.js'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { parseConfig } from '../../plugins/standalone/config.js'
import { createGateway } from '../../plugins/standalone/gateway.js'
import llmGateway, { createRewriteUrl, type LlmGatewayOptions } from '../../plugins/index.js'
import { gatewayOptions, secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

const body = '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}'

async function build (t: Test, options: Partial<LlmGatewayOptions>, server: FastifyServerOptions = {}) {
  const upstream = await startUpstream(t)
  const app = Fastify(server)
  t.teardown(async () => await app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url, options))
  const ask = async (key: string, remoteAddress = '192.0.2.1', headers = {}, url = '/v1/chat/completions') => {
    return await app.inject({
      method: 'POST',
      url,
      remoteAddress,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      payload: body,
    })
  }
  return { app, upstream, ask }
}

t.test('more wrong keys than an address may send are 429 natively, whatever the key, and say when to come back', async (t) => {
  const { app, ask, upstream } = await build(t, { auth: { failures: { perMinute: 3 } } })
  for (let i = 0; i < 3; i++) t.equal((await ask(`guess-${i}`)).statusCode, 401)
  const refused = await ask('guess-4')
  t.equal(refused.statusCode, 429)
  t.match(refused.json(), {
    error: { code: 'too_many_auth_failures', message: 'Too many wrong API keys came from this address. Try again later.' },
  })
  const after = Number(refused.headers['retry-after'])
  t.ok(after > 1 && after <= 20, 'a third of a minute for the next one')
  const anthropic = await ask('guess-5', '192.0.2.1', { 'anthropic-version': '2023-06-01' }, '/v1/messages')
  t.match([anthropic.statusCode, anthropic.json()], [429, { type: 'error', error: { type: 'rate_limit_error' } }])
  t.equal((await ask(secret)).statusCode, 429, 'nor is it told that a guess would be right')
  t.equal(upstream.seen.length, 0)
  t.equal((await ask(secret, '192.0.2.2')).statusCode, 200, 'another address is not concerned')
  t.equal((await ask(secret)).statusCode, 429, 'and a key that is right there is still not told to be right here')
  const counted = gatewayOf(app).metrics.find(({ name }) => name.endsWith('auth_failures_total'))
  t.match(counted?.read().filter((reading) => 'value' in reading && reading.value > 0), [
    { labels: { reason: 'invalid_api_key' }, value: 3 }, { labels: { reason: 'too_many_auth_failures' }, value: 3 },
    { labels: { protocol: 'messages' }, value: 1 },
  ])
})

t.test('a key that was right from an address is let in whatever others guess there', async (t) => {
  const { ask } = await build(t, { auth: { failures: { perMinute: 2 } } })
  t.equal((await ask(secret)).statusCode, 200)
  for (let i = 0; i < 2; i++) t.equal((await ask(`guess-${i}`)).statusCode, 401)
  t.equal((await ask('guess-3')).statusCode, 429)
  t.equal((await ask(secret)).statusCode, 200)
  t.equal((await ask(secret, '192.0.2.7')).statusCode, 200)
})

t.test('guesses that a store is asked about at the same time are all charged, and later ones do not reach it', async (t) => {
  let asked = 0
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(async () => await app.close())
  const { keys: _, ...keyless } = gatewayOptions(upstream.url, { auth: { failures: { perMinute: 2, maxAddresses: 5 } } })
  await app.register(llmGateway, {
    ...keyless,
    lookup: async (key) => {
      asked += 1
      await new Promise(setImmediate)
      return key === 'old' ? { id: 'old', group: 'all', disabled: true } : null
    },
  })
  const ask = async (key: string) =>
    (await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${key}` } })).statusCode
  t.same(await Promise.all(['a', 'b', 'c', 'old'].map(ask)), [401, 401, 401, 401])
  t.equal(asked, 4)
  t.same(await Promise.all(['d', 'old'].map(ask)), [429, 429])
  t.equal(asked, 4)
})

t.test('a wrong key that many requests send while the store is asked about it is one guess', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(async () => await app.close())
  const { keys: _, ...keyless } = gatewayOptions(upstream.url, { auth: { failures: { perMinute: 2 } } })
  const all = new EventEmitter()
  const came = once(all, 'came')
  let count = 0
  app.addHook('onRequest', async () => {
    count += 1
    if (count === 100) setImmediate(() => all.emit('came'))
  })
  await app.register(llmGateway, {
    ...keyless,
    lookup: async (key) => {
      await came
      return key === secret ? { id: 'known', group: 'all' } : null
    },
  })
  const ask = async (key: string) => await app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    payload: body,
  })
  const replies = Array.from({ length: 100 }, async () => (await ask('wrong')).statusCode)
  t.same(new Set(await Promise.all(replies)), new Set([401]))
  t.equal((await ask(secret)).statusCode, 200, 'the right one is let in from there')
})

t.test('behind proxies that are trusted it is the caller\'s address that counts, and one that no proxy told is not believed', async (t) => {
  const failures = { perMinute: 1 }
  const trusting = await build(t, { auth: { failures } }, { trustProxy: ['10.0.0.0/8'] })
  const from = (address: string) => ({ 'x-forwarded-for': address })
  t.equal((await trusting.ask('a', '10.0.0.1', from('2001:db8::1'))).statusCode, 401)
  t.equal((await trusting.ask('b', '10.0.0.1', from('2001:db8::ffff:2'))).statusCode, 429, 'the same /64')
  t.equal((await trusting.ask('c', '10.0.0.1', from('2001:db8:0:1::1'))).statusCode, 401)
  t.equal((await trusting.ask('d', '192.0.2.1', from('198.51.100.1'))).statusCode, 401)
  t.equal((await trusting.ask('e', '192.0.2.1', from('198.51.100.2'))).statusCode, 429)
  t.equal((await trusting.ask('f', '10.0.0.1', from('203.0.113.5, 203.0.113.1'))).statusCode, 401)
  t.equal(
    (await trusting.ask('g', '10.0.0.1', from('203.0.113.6, 203.0.113.1'))).statusCode,
    429,
    'what the caller wrote in front of what the proxy did'
  )
  t.equal((await trusting.ask('h', '10.0.0.1', from('10.0.0.9, 203.0.113.1, 10.0.0.2'))).statusCode, 429, 'over two proxies')
  t.equal(
    (await trusting.ask('i', '10.0.0.1', from('203.0.113.1:40001'))).statusCode, 429, 'a proxy that writes the port of the connection'
  )
  t.equal((await trusting.ask('j', '10.0.0.1', from('[2001:db8::3]:40001'))).statusCode, 429)
  t.equal((await trusting.ask('k', '10.0.0.1', from('made-up-1'))).statusCode, 401)
  t.equal((await trusting.ask('l', '10.0.0.1', from('made-up-2'))).statusCode, 429, 'what is no address is one caller')
  const alone = await build(t, { auth: { failures } })
  t.equal((await alone.ask('a', '192.0.2.1', from('198.51.100.1'))).statusCode, 401)
  t.equal((await alone.ask('b', '192.0.2.1', from('198.51.100.2'))).statusCode, 429)
})

t.test('it is off in an app unless set, on in the standalone gateway unless switched off', async (t) => {
  const { ask } = await build(t, {})
  for (let i = 0; i < 150; i++) if ((await ask(`guess-${i}`)).statusCode !== 401) t.fail('refused')
  const none = { simulator: null, state: null, cells: {}, consolePath: '/console', life: { draining: false } }
  const text = 'upstreams: { a: { url: "http://127.0.0.1:9", credential: x } }\ngroups: { a: { protocols: [chat_completions] } }\nlog: ' +
    '{ level: silent }'
  for (const [more, status] of [['', 429], ['\nauth: { conflict: reject }', 429], ['\nauth: { failures: false }', 401]] as const) {
    const { app } = await createGateway(parseConfig(text + more, {}), none)
    t.teardown(async () => await app.close())
    const guess = async (i: number) =>
      (await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer guess-${i}` } })).statusCode
    // A slow machine sees some of the budget grow again meanwhile.
    const statuses = new Set<number>()
    for (let i = 0; i < 2_000 && (i < 200 || !statuses.has(status)); i++) statuses.add(await guess(i))
    t.same([...statuses], status === 401 ? [401] : [401, 429], more)
  }
  t.throws(() => parseConfig(`${text}\nauth: { failures: true }`, {}), /failures/)
  t.throws(() => parseConfig(`${text}\nlisten: { trustProxy: [here] }`, {}), /listen.trustProxy\[0\]: must be an address/)
  for (const proxy of ['10.0.0.0/33', '::1/129', '10.0.0.0/8/8', '10.0.0.0/x']) {
    t.throws(() => parseConfig(`${text}\nlisten: { trustProxy: ["${proxy}"] }`, {}), /trustProxy/, proxy)
  }
})

t.test('memory is bounded, and a budget grows again', async (t) => {
  const budget = new FailureBudget({ perMinute: 60, maxAddresses: 10 })
  const asker = { network: '192.0.2.1', digest: 'd' }
  for (let i = 0; i < 60; i++) budget.wrong(asker, 0)
  t.equal(budget.waitMs(asker, 0), 1_000)
  t.match(String(budget.waitMs(asker, 900)), /^10[01]$/)
  t.equal(budget.waitMs(asker, 1_000), null)
  t.equal(budget.waitMs(asker, 1e9), null)
  for (let i = 0; i < 120; i++) budget.wrong(asker, 1e9)
  t.equal(budget.waitMs(asker, 1e9), 61_000, 'a debt is paid off')
  for (let i = 0; i < 11; i++) budget.wrong({ network: `192.0.2.${100 + i}`, digest: 'd' }, 1e9)
  t.equal(budget.waitMs(asker, 1e9), null, 'forgotten')
})

t.test('a key that was right and is used on after its end runs up no debt for the others of its address', async (t) => {
  const keys = new Map([['old', 'active'], ['new', 'active']])
  const lookup = async (key: string) => keys.has(key) ? { id: key, group: 'all', disabled: keys.get(key) !== 'active' } : null
  const { ask } = await build(t, { keys: [], lookup, auth: { failures: { perMinute: 60 }, cache: { ttlMs: 0 } } })
  t.equal((await ask('old')).statusCode, 200)
  keys.set('old', 'revoked')
  const statuses = new Set<number>()
  for (let i = 0; i < 300; i++) statuses.add((await ask('old')).statusCode)
  t.same([...statuses], [401, 429])
  const { statusCode, headers } = await ask('new')
  t.ok(statusCode === 200 || Number(headers['retry-after']) === 1, 'whoever else calls from there waits for one second, not for minutes')
})

t.test('a guess is charged to the address that it came from, also where its caller has left over HTTP/2', async (t) => {
  let answers: Array<(found: null) => void> = []
  const app = Fastify({ http2: true })
  t.teardown(async () => await app.close())
  const { keys: _, ...keyless } = gatewayOptions('http://127.0.0.1:9', { auth: { failures: { perMinute: 2 } } })
  const lookup = async () => await new Promise<null>((resolve) => { answers.push(resolve) })
  await Object(app).register(llmGateway, { ...keyless, lookup })
  const client = connect(await app.listen({ host: '127.0.0.1', port: 0 }))
  t.teardown(() => client.destroy())
  const guess = (key: string) => {
    const stream = client.request({ ':path': '/v1/responses/r1', authorization: `Bearer ${key}` })
    return stream.end()
  }
  const left = ['a', 'b', 'c'].map(guess)
  while (answers.length < 3) await new Promise(setImmediate)
  const settled = new Promise<void>((resolve) => {
    let rest = 3
    gatewayOf(Object(app)).settlement.onSettled(() => { if (--rest === 0) resolve() })
  })
  for (const stream of left) stream.close(constants.NGHTTP2_CANCEL)
  await settled
  for (const answer of answers) answer(null)
  answers = []
  await new Promise(setImmediate)
  const [{ ':status': status }] = await once(guess('d'), 'response')
  t.equal(status, 429)
})

t.test('the budget of wrong keys is that of an IPv4 address, or of an IPv6 /64', async (t) => {
  const cases = {
    '192.0.2.1': '192.0.2.1',
    '::ffff:192.0.2.1': '192.0.2.1',
    '::FFFF:192.0.2.1': '192.0.2.1',
    '[::ffff:192.0.2.1]:50123': '192.0.2.1',
    '1::5%a:b:c:d:e:f': '1:0:0:0::/64',
    '::ffff:192.10.22.133': '192.10.22.133',
    '1::ffff:192.0.2.1': '1:0:0:0::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '2001::5:1:2:3:4': '2001:0:0:5::/64',
    '::7:6:5:4:3:2': '0:0:7:6::/64',
    '1:2:3:4:5:6:192.0.2.1': '1:2:3:4::/64',
    '2001:0db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '::1': '0:0:0:0::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    '1:2:3::': '1:2:3:0::/64',
    '192.0.2.1:50123': '192.0.2.1',
    '[2001:db8::1]:50123': '2001:db8:0:0::/64',
    '[2001:DB8::1]': '2001:db8:0:0::/64',
    '': 'unknown',
    unknown: 'unknown',
    _hidden: 'unknown',
    '192.0.2.1.5': 'unknown',
    '192.0.2.256:1': 'unknown',
    '[x]:1': 'unknown',
    'a[::1]': 'unknown',
    '[1::]2': 'unknown',
    '1:2:3': 'unknown',
  }
  for (const [address, network] of Object.entries(cases)) t.equal(networkOf(address), network)
})

t.test('options that are wrong fail the start', async (t) => {
  for (const failures of [{}, { perMinute: 0 }, { perMinute: 1, maxAddresses: 0 }, { perMinute: 1, max: 1 }, true]) {
    const app = Fastify()
    // @ts-expect-error as of a host without types
    app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { auth: { failures } }))
    await t.rejects(async () => await app.ready(), { code: 'LLM_GATEWAY_OPTION', message: /auth\.failures/ })
  }
})

t.test('the start says which plugins of the host do not see a wrong key, and in which order they do', async (t) => {
  const begin = async (helmetFirst: boolean, options: Partial<LlmGatewayOptions>) => {
    const warnings: string[] = []
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => warnings.push(JSON.parse(line).msg) } } })
    t.teardown(async () => await app.close())
    if (helmetFirst) await app.register(helmet)
    await app.register(rateLimit, { max: 2 })
    await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', options))
    if (!helmetFirst) await app.register(helmet)
    const guess = async () => await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: 'Bearer wrong' } })
    return { warnings, replies: [await guess(), await guess(), await guess()] }
  }
  const blind = await begin(false, {})
  t.equal(blind.warnings.length, 2)
  t.match(blind.warnings, [/^@fastify\/helmet is registered after/, /^@fastify\/rate-limit does not count.*createRewriteUrl\(\)/])
  t.same(blind.replies.map(({ statusCode }) => statusCode), [401, 401, 401])
  t.equal(blind.replies[0]?.headers['x-frame-options'], undefined)
  const told = await begin(true, { auth: { failures: { perMinute: 2 } } })
  t.same(told.warnings, [])
  t.same(told.replies.map(({ statusCode }) => statusCode), [401, 401, 429])
  t.ok(told.replies[0]?.headers['x-frame-options'], 'registered before, helmet has its say')
})

t.test('a limiter of the host that is a hook before the gateway counts wrong keys, as the warning says', async (t) => {
  const warnings: string[] = []
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => warnings.push(JSON.parse(line).msg) } } })
  t.teardown(async () => await app.close())
  await app.register(rateLimit, { max: 2, global: false })
  app.addHook('onRequest', app.rateLimit())
  await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { auth: { failures: false } }))
  const guess = async () =>
    (await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization: 'Bearer wrong' } })).statusCode
  t.same([await guess(), await guess(), await guess()], [401, 401, 429])
  t.same(warnings, [])
})

t.test('a page can read why its key was refused where cors is registered before the gateway, and the start says so', async (t) => {
  for (const before of [true, false]) {
    const warnings: string[] = []
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => warnings.push(JSON.parse(line).msg) } } })
    t.teardown(async () => await app.close())
    if (before) app.register(cors, { origin: true })
    app.register(llmGateway, gatewayOptions('http://127.0.0.1:9'))
    if (!before) app.register(cors, { origin: true })
    const reply = await app.inject({
      method: 'POST', url: '/v1/chat/completions', headers: { authorization: 'Bearer wrong', origin: 'https://app.example' },
    })
    t.equal(reply.statusCode, 401)
    t.equal(reply.headers['access-control-allow-origin'], before ? 'https://app.example' : undefined)
    t.equal(warnings.length, before ? 0 : 1)
    t.match(warnings.join(), before ? '' : /^@fastify\/cors is registered after the gateway/)
  }
})

t.test('such a limiter counts a repaired path once where the app rewrites it, as the warning says', async (t) => {
  const upstream = await startUpstream(t)
  const statuses: Record<string, number[]> = {}
  for (const [name, server] of Object.entries({ twice: {}, once: { rewriteUrl: createRewriteUrl() } })) {
    const app = Fastify(server)
    t.teardown(async () => await app.close())
    await app.register(rateLimit, { max: 2, global: false })
    app.addHook('onRequest', app.rateLimit())
    await app.register(llmGateway, gatewayOptions(upstream.url, { auth: { failures: false } }))
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const ask = async () => (await app.inject({ method: 'POST', url: '/v1/v1/chat/completions', headers, payload: body })).statusCode
    statuses[name] = [await ask(), await ask(), await ask()]
  }
  t.same(statuses, { twice: [200, 429, 429], once: [200, 200, 429] })
})
