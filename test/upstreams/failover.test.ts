import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { memoryBalances, memoryLedger } from '../../plugins/state/index.js'
import { PoolAttempts } from '../../plugins/upstreams/attempts.js'
import { call, everyProtocol, listen, secret, startGateway } from '../helpers/gateway.js'
import { replyFixture, sha256, Signal, type Script } from '../helpers/upstream.js'
import { ask, inOrder, metricsOf, overloaded, seenBy, startPool } from './pool-gateway.js'

const chat = { model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] }
const reply = replyFixture('chat_completions.json').toString()

t.test('another member is asked after a failure for which nobody has worked', async (t) => {
  const refusals: ReadonlyArray<readonly [what: string, script: Script, reason: string]> = [
    ['429', { status: 429, headers: { 'retry-after': '20' }, body: {} }, '429'],
    ['503', overloaded, '503'],
    ['529', { status: 529, body: {} }, '529'],
    ['a wrong credential', { status: 401, body: {} }, 'credential'],
    ['an unpaid account', { status: 402, body: {} }, 'credential'],
    ['a spent budget told as 400', { status: 400, body: { error: { message: 'Your credit balance is too low' } } }, 'credential'],
    [
      'a bad key told as 400',
      { status: 400, body: { error: { message: 'API key not valid. Please pass a valid API key.' } } },
      'credential',
    ],
    ...[301, 302, 303, 307, 308].map((status): [string, Script, string] => [
      `a redirection by ${status}`, { status, headers: { location: '/sign-in' }, body: 'moved' }, 'connect',
    ]),
  ]
  for (const [what, script, reason] of refusals) {
    const gateway = await startPool(t, { rules: inOrder })
    const [first, second] = gateway.members
    first?.queue(script)
    const answer = await ask(gateway)
    t.match(answer, { status: 200, body: reply }, what)
    t.strictSame(seenBy(gateway), [1, 1], what)
    t.equal(first?.seen[0]?.sha256, second?.seen[0]?.sha256, 'the same bytes')
    t.match([first?.seen[0]?.headers.authorization, second?.seen[0]?.headers.authorization], ['Bearer secret-0', 'Bearer secret-1'])
    const llm = await gateway.settled.next()
    t.match(
      llm,
      {
        routing: { upstream: 'm1', attempts: [{ upstream: 'm0', result: /./, status: script.status }, { upstream: 'm1', result: 'ok', status: 200 }] },
        upstreamReply: { status: 200 },
        outcome: 'ok',
        usage: { tokens: { input: 80, output: 30 } },
      },
      what
    )
    t.match(JSON.stringify(metricsOf(gateway)), new RegExp(`failovers_total.*"reason":"${reason}","value":[1-9]`), what)
    const { body } = await gateway.app.inject('/metrics')
    t.strictSame(body.match(/^llm_gateway_upstream_responses_total\{.*$/gm), [
      `llm_gateway_upstream_responses_total{upstream="m0",status_class="${String(script.status)[0]}xx"} 1`,
      'llm_gateway_upstream_responses_total{upstream="m1",status_class="2xx"} 1',
    ], what)
  }
})

t.test('a member that only redirects gets no requests after five', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  const [first] = gateway.members
  if (first === undefined) throw new Error('no members')
  first.respond = () => ({ status: 302, headers: { location: 'https://sign-in.example/' }, body: 'moved' })
  for (let asked = 0; asked < 8; asked += 1) t.equal((await ask(gateway)).status, 200)
  t.ok(first.seen.length < 8, String(first.seen.length))
})

t.test('nothing else is sent twice', async (t) => {
  const finals: ReadonlyArray<readonly [what: string, script: Script, status: number]> = [
    ['a request that is wrong', { status: 400, body: { error: { message: 'max_tokens is too large' } } }, 400],
    ['a model that is not there', { status: 404, body: { error: {} } }, 404],
    ['too large', { status: 413, body: {} }, 413],
    ['cannot be processed', { status: 422, body: {} }, 422],
    ['500', { status: 500, body: { error: { message: 'x' } } }, 500],
    ['502', { status: 502, body: {} }, 502],
    ['504', { status: 504, body: {} }, 504],
    ['a connection that breaks after the request was written', { cutAt: 'headers' }, 502],
  ]
  for (const [what, script, status] of finals) {
    const gateway = await startPool(t, { rules: inOrder })
    gateway.members[0]?.queue(script)
    const answer = await ask(gateway)
    t.equal(answer.status, status, what)
    if (script.body !== undefined) t.equal(answer.body, JSON.stringify(script.body), `${what}: as it came`)
    t.strictSame(seenBy(gateway), [1, 0], what)
    const llm = await gateway.settled.next()
    t.match(llm, { routing: { upstream: 'm0', attempts: [{ upstream: 'm0' }] } }, what)
  }
})

t.test('what may have been worked for is sent again where the pool says so', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { retryOn: ['reset', 'timeout', 500, '502', 504], attemptTimeoutMs: 300 } })
  const [first] = gateway.members
  for (const script of [
    { cutAt: 'headers' }, { status: 500, body: {} }, { status: 502, body: {} }, { status: 504, body: {} },
  ] satisfies Script[]) {
    first?.queue(script)
    t.equal((await ask(gateway)).status, 200)
  }
  t.strictSame(seenBy(gateway), [4, 4])
  const other = await startPool(t, { rules: inOrder, pool: { retryOn: ['timeout'], attemptTimeoutMs: 300 } })
  other.members[0]?.queue({ stallAt: 'headers' })
  t.equal((await ask(other)).status, 200, 'a member that hangs')
  t.strictSame(seenBy(other), [1, 1])
  t.match(await other.settled.next(), { routing: { attempts: [{ result: 'timeout' }, { result: 'ok' }] } })
})

t.test('a member that cannot be reached costs nobody a request', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  await gateway.members[0]?.close()
  for (let i = 0; i < 8; i += 1) t.equal((await ask(gateway)).status, 200)
  t.strictSame(seenBy(gateway), [0, 8])
  const llms = await Promise.all(Array.from({ length: 8 }, async () => await gateway.settled.next()))
  t.strictSame(llms.map(({ routing: { attempts } }) => attempts?.length), [2, 2, 2, 2, 2, 1, 1, 1], 'after five failures it is left alone')
  t.match(JSON.stringify(metricsOf(gateway)), /upstream_available.*"upstream":"m0","value":0.*"upstream":"m1","value":1/)
})

t.test('a request that one member took, where others could not be asked, is told, paid for and recorded as sent', async (t) => {
  const balances = memoryBalances()
  const ledger = memoryLedger()
  const gateway = await startPool(t, {
    members: 3,
    rules: inOrder,
    pool: { retryOn: ['connect', 'reset', 'timeout'], attemptTimeoutMs: 500 },
    gateway: {
      groups: { all: { protocols: everyProtocol, upstream: 'pool', limits: { balance: 1_000_000 } } },
      limits: { balances, ledger },
    },
  })
  const [gone, resets, stalls] = gateway.members
  await gone?.close()
  resets?.queue({ cutAt: 'headers' })
  stalls?.queue({ stallAt: 'headers' })
  const answer = await ask(gateway)
  t.match({ ...answer, body: JSON.parse(answer.body) }, { status: 502, body: { error: { code: 'upstream_reset' } } })
  t.match((await gateway.settled.next()).routing.attempts, [{ result: 'connect' }, { result: 'reset' }, { result: 'timeout' }])
  const records = []
  for await (const record of ledger.read()) records.push(record)
  t.match(records, [{ outcome: 'upstream_error' }])
  t.ok(Number(records[0]?.charged) > 0)
  t.match(await balances.read('all'), { spent: records[0]?.charged, held: 0 })
})

t.test('when all fail the caller gets the most useful reply, as it came', async (t) => {
  const cases: ReadonlyArray<readonly [what: string, scripts: readonly Script[], status: number, body: string, retryAfter?: string]> = [
    ['limits', [{ status: 503, body: { a: 1 } }, { status: 429, headers: { 'retry-after': '30' }, body: { b: 1 } }, {
      status: 429, headers: { 'retry-after': '7', 'x-odd': 'kept' }, body: { c: 1 },
    }], 429, '{"c":1}', '7'],
    [
      'overloads',
      [{ status: 401, body: { a: 1 } }, { status: 529, headers: { 'retry-after': '9' }, body: { b: 1 } }, { status: 503, body: { c: 1 } }],
      529,
      '{"b":1}',
      '9',
    ],
    ['what is wrong with the request', [{ status: 503, body: { a: 1 } }, { status: 400, body: { b: 1 } }], 400, '{"b":1}'],
    [
      'refused credentials',
      [{ status: 401, body: { a: 1 } }, { status: 401, body: { b: 1 } }, { status: 401, body: { c: 1 } }],
      401,
      '{"a":1}',
    ],
  ]
  for (const [what, scripts, status, body, retryAfter] of cases) {
    const gateway = await startPool(t, { members: 3, rules: inOrder })
    gateway.members.forEach((member, i) => { const script = scripts[i]; if (script !== undefined) member.queue(script) })
    const answer = await ask(gateway)
    t.match(answer, { status, body }, what)
    t.equal(answer.headers['retry-after'], retryAfter)
    const llm = await gateway.settled.next()
    t.equal(llm.routing.attempts?.length, scripts.length)
    t.equal(llm.upstreamReply.status, status)
    t.equal(llm.routing.upstream, `m${scripts.findIndex((script) => JSON.stringify(script.body) === body)}`)
  }
  const gone = await startPool(t, { rules: inOrder })
  await Promise.all(gone.members.map(async (member) => await member.close()))
  const answer = await ask(gone)
  t.equal(answer.status, 502)
  t.match(JSON.parse(answer.body), { error: { code: 'upstream_unreachable' } })
})

t.test('upstreams of one account are not asked one after the other, and other models go on', async (t) => {
  const gateway = await startPool(t, { members: 3, rules: inOrder, upstreams: [{ account: 'shared' }, { account: 'shared' }] })
  gateway.members[0]?.queue({ status: 429, headers: { 'retry-after': '20' }, body: {} })
  t.equal((await ask(gateway)).status, 200)
  t.strictSame(seenBy(gateway), [1, 0, 1])
  t.equal((await ask(gateway)).status, 200)
  t.strictSame(seenBy(gateway), [1, 0, 2], 'nor by the next request for the model')
  t.equal((await ask(gateway, { ...chat, model: 'gpt-4o' })).status, 200)
  t.strictSame(seenBy(gateway), [2, 0, 2], 'another model')
})

t.test('after a limit no upstream of the same account is asked, whatever the reply says of waiting', async (t) => {
  for (const headers of [{ 'retry-after': '0' }, { 'retry-after-ms': '0' }, {}]) {
    const gateway = await startPool(t, { members: 3, rules: inOrder, upstreams: [{ account: 'shared' }, { account: 'shared' }] })
    gateway.members[0]?.queue({ status: 429, headers, body: {} })
    t.equal((await ask(gateway)).status, 200)
    t.strictSame(seenBy(gateway), [1, 0, 1])
  }
})

t.test('a body of any size is sent again', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  for (const size of [300_000, 20_000_000]) {
    gateway.members[0]?.queue(overloaded)
    const body = JSON.stringify({ ...chat, messages: [{ role: 'user', content: 'x'.repeat(size) }] })
    t.equal((await ask(gateway, body)).status, 200)
    const [first, second] = gateway.members.map(({ seen }) => seen.at(-1)?.sha256)
    t.equal(first, sha256(body))
    t.equal(second, sha256(body))
  }
  const url = await listen(gateway.app)
  gateway.members[0]?.queue(overloaded)
  const chunked = call(`${url}/v1/chat/completions`, { headers: { 'transfer-encoding': 'chunked' }, body: JSON.stringify(chat) })
  t.equal((await chunked.reply).statusCode, 200)
  t.equal(gateway.members[1]?.seen.at(-1)?.sha256, sha256(JSON.stringify(chat)))
})

t.test('a pool of one asks it again, a little later', async (t) => {
  const gateway = await startPool(t, { members: 1 })
  gateway.members[0]?.queue(overloaded, overloaded)
  t.equal((await ask(gateway)).status, 200)
  t.strictSame(seenBy(gateway), [3])
  gateway.members[0]?.queue(overloaded, overloaded, overloaded, overloaded)
  t.equal((await ask(gateway)).status, 503)
  t.strictSame(seenBy(gateway), [6])
})

t.test('no member has more than it may have at the same time', async (t) => {
  const gateway = await startPool(t, { rules: [{ concurrency: 1 }, { concurrency: 2 }], pool: { affinity: 'none' } })
  let release = (): void => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  for (const member of gateway.members) member.respond = () => ({ before: async () => await held })
  const running = [ask(gateway), ask(gateway), ask(gateway)]
  await Promise.all([gateway.members[0]?.arrivals.next(), gateway.members[1]?.arrivals.next(), gateway.members[1]?.arrivals.next()])
  const busy = await ask(gateway)
  t.equal(busy.status, 503)
  t.match(JSON.parse(busy.body), { error: { code: 'upstream_busy' } })
  t.ok(busy.headers['retry-after'])
  release()
  for (const each of running) t.equal((await each).status, 200)
  t.strictSame(seenBy(gateway), [1, 2])
  t.equal((await ask(gateway)).status, 200)
})

t.test('a conversation keeps to its member, also where two callers chose the same words', async (t) => {
  const gateway = await startPool(t, { members: 4 })
  for (let i = 0; i < 8; i += 1) t.equal((await ask(gateway, chat, { 'session-id': 'one' })).status, 200)
  t.strictSame(seenBy(gateway).filter((seen) => seen > 0), [8])
})

t.test('with one account there is nobody else to ask after a limit', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, upstreams: [{ account: 'one' }, { account: 'one' }] })
  gateway.members[0]?.queue({ status: 429, headers: { 'retry-after': '5' }, body: {} })
  t.match(await ask(gateway), { status: 429, headers: { 'retry-after': '5' } })
  t.strictSame(seenBy(gateway), [1, 0])
})

t.test('a member whose base needs a model refuses a request that names none', async (t) => {
  const gateway = await startPool(t, { members: 1, upstreams: [{ url: 'http://127.0.0.1:9/{model}' }] })
  const reply = await gateway.app.inject({ url: '/v1/models', headers: { authorization: `Bearer ${secret}` } })
  t.equal(reply.statusCode, 400)
  t.match(reply.json(), { error: { code: 'model_required' } })

  const alone = await startGateway(t, 'http://127.0.0.1:9/{model}')
  t.equal((await alone.app.inject({ url: '/v1/models', headers: { authorization: `Bearer ${secret}` } })).statusCode, 400)
  t.equal((await alone.settled.next()).times.sentAt, 0)
  t.notMatch((await alone.app.inject('/metrics')).body, /^llm_gateway_upstream_attempts_total\{.*\} [1-9]/m, 'which is no attempt')
})

t.test('what is thrown where nobody waits for it is an error of the request, and not the end of the process', async (t) => {
  const lines: string[] = []
  const stream = { write: (line: string) => { lines.push(line) } }
  const gateway = await startPool(t, { rules: inOrder, server: { logger: { level: 'error', stream } } })
  const { next, failed } = PoolAttempts.prototype
  const restore = (): void => { Object.assign(PoolAttempts.prototype, { next, failed }) }
  t.teardown(restore)
  const throws = (): never => { throw new Error('a mistake of ours') }
  const rejects = async (): Promise<never> => throws()
  for (const broken of [{ next: throws }, { next: rejects }, { failed: rejects }]) {
    Object.assign(PoolAttempts.prototype, broken)
    gateway.members[0]?.queue(overloaded)
    t.match(await ask(gateway), { status: 500, body: /"code":"internal_error"/ })
    restore()
  }
  // One that comes when the caller has left is of no use to anybody.
  while (gateway.settled.size > 0) await gateway.settled.next()
  const [asked, left] = [new Signal<void>(), new Signal<void>()]
  const throwsLate = async (): Promise<never> => {
    asked.push()
    await left.next()
    return throws()
  }
  Object.assign(PoolAttempts.prototype, { next: throwsLate })
  const { request } = call(`${await listen(gateway.app)}/v1/chat/completions`, { body: JSON.stringify(chat) })
  await asked.next()
  request.destroy()
  await gateway.settled.next()
  left.push()
  await wait(10)
  restore()
  t.equal(lines.filter((line) => line.includes('an upstream could not be asked') && line.includes('a mistake of ours')).length, 3)
  t.match(await ask(gateway), { status: 200 })
  t.match(gatewayOf(gateway.app).upstreamsStatus().upstreams, [{ active: 0 }, { active: 0 }])
})
