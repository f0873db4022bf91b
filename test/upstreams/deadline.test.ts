import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Upstream } from '../../plugins/core/upstream/upstream.js'
import { PoolAttempts } from '../../plugins/upstreams/attempts.js'
import { Bindings } from '../../plugins/upstreams/bindings.js'
import { HealthRegistry } from '../../plugins/upstreams/health.js'
import { poolOf, poolOfOne } from '../../plugins/upstreams/pool.js'
import { RetryBudget } from '../../plugins/upstreams/retry-budget.js'
import type { Surroundings } from '../../plugins/upstreams/surroundings.js'
import { call, listen, read, type Gateway } from '../helpers/gateway.js'
import { replyFixture } from '../helpers/upstream.js'
import { ask, inOrder, seenBy, startPool } from './pool-gateway.js'
import { requestTo, upstreamOf } from './request.js'

/** An address that takes no connection and refuses none: its process stands still, and its queue is full. */
async function startSilence (t: Test): Promise<string> {
  const program =
    'const s = require("net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => console.log(s.address().port))'
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [line] = await once(child.stdout, 'data')
  child.kill('SIGSTOP')
  const port = Number(String(line))
  const fillers = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  t.teardown(() => fillers.forEach((socket) => socket.destroy()))
  await wait(100)
  return `http://127.0.0.1:${port}`
}

/** What an app does at its first request alone is done. */
async function warm ({ app, settled }: Gateway): Promise<void> {
  await app.inject('/v1/models')
  settled.clear()
}

t.test('a member that is silent costs its time and no more, connected or not', async (t) => {
  const silence = await startSilence(t)
  for (const upstreams of [[], [{ url: silence }]]) {
    const gateway = await startPool(t, { rules: inOrder, upstreams, pool: { attemptTimeoutMs: 500, retryOn: ['connect', 'timeout'] } })
    await warm(gateway)
    gateway.members[0]?.queue({ stallAt: 'headers' })
    const since = performance.now()
    t.match(await ask(gateway), { status: 200, body: replyFixture('chat_completions.json').toString() })
    t.ok(performance.now() - since < 5_000, `${performance.now() - since} ms`)
    const first = upstreams.length === 0 ? 'timeout' : 'connect'
    t.match(await gateway.settled.next(), { routing: { attempts: [{ result: first }, { result: 'ok' }] } })
  }
})

t.test('nobody waits for longer than the deadline', async (t) => {
  const silence = await startSilence(t)
  const pool = { deadlineMs: 200, retryOn: ['connect', 'timeout'] as const }
  const cases = [
    { upstreams: [], sent: true },
    { upstreams: [{ url: silence }, { url: silence }], sent: false },
    {
      upstreams: [
        { credential: async () => await new Promise<string>(() => {}) }, { credential: async () => await new Promise<string>(() => {}) },
      ],
      sent: false,
    },
  ]
  for (const { upstreams, sent } of cases) {
    const gateway = await startPool(t, { rules: inOrder, upstreams, pool })
    await warm(gateway)
    for (const member of gateway.members) member.respond = () => ({ stallAt: 'headers' })
    const since = performance.now()
    const { status } = await ask(gateway)
    t.ok(status === 504 || status === 503, String(status))
    const took = performance.now() - since
    t.ok(took >= 190 && took < 5_000, `${took} ms`)
    const llm = await gateway.settled.next()
    t.equal(llm.times.sentAt > 0, sent, 'what was never sent is not paid for')
    t.strictSame(seenBy(gateway), sent ? [1, 0] : [0, 0])
  }
})

t.test('nobody waits for longer than the deadline for a secret in place of one that was refused', async (t) => {
  const asked: string[] = []
  const credential = async (): Promise<string> => asked.push('') === 1 ? 'old' : await new Promise<string>(() => {})
  const gateway = await startPool(t, { rules: inOrder, upstreams: [{ credential }], pool: { deadlineMs: 500 } })
  await warm(gateway)
  gateway.members[0]?.queue({ status: 401, body: { error: { message: 'an old one' } } })
  const since = performance.now()
  t.match(await ask(gateway), { status: 401, body: /an old one/ })
  t.ok(performance.now() - since < 5_000, `${performance.now() - since} ms`)
  t.equal(asked.length, 2)
})

/** What attempts have around them, by a clock of the test's own. */
function aroundAt (clock: { now: number }, failedOver: (reason: string) => void = () => {}): Surroundings {
  return {
    bindings: new Bindings(null, () => {}),
    budget: new RetryBudget(),
    attempted: () => {},
    failedOver: (_pool, reason) => failedOver(reason),
    now: () => clock.now,
    random: () => 0.5,
  }
}

t.test('the same member is not asked again beyond the deadline', async (t) => {
  const clock = { now: 0 }
  const failedOver: string[] = []
  const around = aroundAt(clock, (reason) => failedOver.push(reason))
  const upstream = upstreamOf({ url: 'http://a' })
  const pool = { ...poolOfOne(upstream, new HealthRegistry()), causes: new Set(['connect']), attempts: 2, deadlineMs: 1_000 }
  for (const [failsAt, waitMs] of [[890, 100], [910, null]] as const) {
    clock.now = 0
    const llm = requestTo('/v1/models', { method: 'GET' })
    const attempts = new PoolAttempts(pool, llm, {}, false, around)
    clock.now = 5.4
    attempts.next()
    clock.now = failsAt
    t.equal(attempts.failed({ kind: 'transport', error: new Error('refused'), sent: false }), waitMs)
    attempts.over('complete')
    t.match(llm.routing.attempts?.[0], { result: 'connect', durationMs: failsAt - 5 }, 'since the attempt began, in whole milliseconds')
  }
  t.strictSame(failedOver, ['connect'])
})

t.test('what a secret took of the deadline is not left for its attempt', async (t) => {
  const clock = { now: 0 }
  const upstream = upstreamOf({ url: 'http://a', credential: async () => 'secret' })
  const pool = { ...poolOfOne(upstream, new HealthRegistry()), deadlineMs: 1_000 }
  const called = new PoolAttempts(pool, requestTo('/v1/models', { method: 'GET' }), {}, false, aroundAt(clock)).next()
  clock.now = 600
  t.match(await called, { headersTimeoutMs: 400 })
})

t.test('nor is another one, also where nothing was sent yet', async (t) => {
  const [slow, first, second] = [
    upstreamOf({ url: 'http://slow', credential: async () => { throw new Error('away') } }, 'slow'),
    upstreamOf({ url: 'http://first' }, 'first'), upstreamOf({ url: 'http://second' }, 'second'),
  ]
  for (const [failsAt, isAsked] of [[999, true], [1_000, false]] as const) {
    const clock = { now: 0 }
    const open = (...upstreams: Upstream[]): PoolAttempts => {
      const pool = { ...poolOf(upstreams.slice(0, 1), upstreams.slice(1), new HealthRegistry()), deadlineMs: 1_000 }
      return new PoolAttempts(pool, requestTo('/v1/models', { method: 'GET' }), {}, false, aroundAt(clock))
    }
    const sent = open(first, second)
    sent.next()
    const unsent = open(slow, second)
    const called = unsent.next()
    clock.now = failsAt
    t.equal(sent.failed({ kind: 'transport', error: new Error('refused'), sent: false }), isAsked ? 0 : null)
    t.equal(await called instanceof Error, !isAsked)
  }
})

t.test('a head without content is held no longer than an attempt may take', async (t) => {
  const full = replyFixture('responses.sse').toString()
  const head = full.slice(0, full.indexOf('event: response.in_progress'))
  let result: string | undefined = 'timeout'
  // On a machine that is busy even the head may take longer than the first of them.
  for (const attemptTimeoutMs of [100, 1_000, 10_000]) {
    if (result !== 'timeout') break
    const gateway = await startPool(t, { rules: inOrder, pool: { attemptTimeoutMs, retryOn: ['first_event', 'timeout'] } })
    await warm(gateway)
    let goOn = (): void => {}
    const wanted = new Promise<void>((resolve) => { goOn = resolve })
    gateway.members[0]?.queue({
      headers: { 'content-type': 'text/event-stream' },
      body: full,
      split: [head.length],
      before: async (write) => { if (write === 1) await wanted },
    })
    const url = await listen(gateway.app)
    const reply = await call(`${url}/v1/responses`, { body: JSON.stringify({ model: 'gpt-5', input: 'Hi', stream: true }) }).reply
    // The rest comes only now: it is the caller who waits for it.
    goOn()
    t.equal((await read(reply)).bytes.toString(), full)
    result = (await gateway.settled.next()).routing.attempts?.[0]?.result
  }
  t.equal(result, 'ok')
})

t.test('a queue of ours that is full is no fault of the upstream\'s', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, gateway: { forward: { connections: 1, maxQueued: 0 } } })
  let release = (): void => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  gateway.members[0]?.queue({ before: async () => await held })
  const first = ask(gateway)
  await gateway.members[0]?.arrivals.next()
  for (let i = 0; i < 6; i += 1) t.equal((await ask(gateway)).status, 200)
  release()
  t.equal((await first).status, 200)
  t.equal((await ask(gateway)).status, 200)
  t.strictSame(seenBy(gateway), [2, 6], 'it is not left alone')
})

t.test('who waited in a queue of ours in vain told nothing of the upstream: neither that it is out, nor that it is back', async (t) => {
  const breaking = { rules: inOrder, members: 2, pool: { attemptTimeoutMs: 300 } }
  for (const limits of [{ maxQueued: 0 }, { queueMs: 50 }, { queueMs: 5_000 }]) {
    const gateway = await startPool(t, { ...breaking, gateway: { forward: { connections: 1, ...limits } } })
    let release = (): void => {}
    const held = new Promise<void>((resolve) => { release = resolve })
    const slow = { split: [1], before: async (write: number) => { if (write > 0) await held } }
    gateway.members[0]?.queue(slow)
    const first = ask(gateway)
    await gateway.members[0]?.arrivals.next()
    for (let i = 0; i < 6; i += 1) t.equal((await ask(gateway)).status, 200)
    const metrics = (await gateway.app.inject('/metrics')).body
    t.match(metrics, /upstream_attempts_total\{upstream="m0",result="queue"\} 6/)
    t.notMatch(metrics, /upstream="m0",result="connect"\} [1-9]/)
    release()
    t.equal((await first).status, 200)
    t.strictSame(seenBy(gateway), [1, 6])
    t.equal((await ask(gateway)).status, 200)
    t.strictSame(seenBy(gateway), [2, 6], 'it is asked at once again')
  }
})

t.test('a request that one member took is sent, also where it then waited in a queue of ours in vain', async (t) => {
  const pool = { attempts: 2, retryOn: ['connect', 'reset', 503] as const }
  const gateway = await startPool(t, { rules: inOrder, pool, gateway: { forward: { connections: 1, maxQueued: 0 } } })
  const [first, second] = gateway.members
  let release = (): void => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  first?.queue({ status: 503, body: {} })
  second?.queue({ before: async () => await held })
  const other = ask(gateway)
  await second?.arrivals.next()
  first?.queue({ cutAt: 'headers' })
  t.match(await ask(gateway), { status: 502, body: /"code":"upstream_reset"/ })
  const llm = await gateway.settled.next()
  t.match(llm.routing.attempts, [{ result: 'reset' }, { result: 'queue' }])
  t.ok(llm.times.sentAt > 0)
  release()
  t.equal((await other).status, 200)
})

t.test('an upstream that is in no pool is asked once, for as long as it takes', async (t) => {
  t.match(poolOfOne(upstreamOf({ url: 'http://u' }), new HealthRegistry()), { attempts: 1, deadlineMs: Infinity })
})
