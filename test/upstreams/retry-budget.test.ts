/** Retries are bounded by what runs. One that finds no place waits for it, as a healthy member may still serve it. */
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { Allowance } from '../../plugins/upstreams/allowance.js'
import { PoolAttempts } from '../../plugins/upstreams/attempts.js'
import { Bindings } from '../../plugins/upstreams/bindings.js'
import { HealthRegistry } from '../../plugins/upstreams/health.js'
import { readPools } from '../../plugins/upstreams/pool.js'
import { readUpstreams } from '../../plugins/upstreams/read-upstream.js'
import { RetryBudget } from '../../plugins/upstreams/retry-budget.js'
import type { Surroundings } from '../../plugins/upstreams/surroundings.js'
import { ask, inOrder, overloaded, seenBy, startPool } from './pool-gateway.js'
import { requestTo } from './request.js'

t.test('of many requests whose member is overloaded three are retried at once, and all are served', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  const [first, second] = gateway.members
  if (first === undefined || second === undefined) throw new Error('no members')
  first.respond = () => ({ ...overloaded, before: async () => await wait(50) })
  let running = 0
  let most = 0
  const held: Array<() => void> = []
  const endAll = (): void => {
    for (const end of held.splice(0)) end()
  }
  second.respond = () => ({
    // Each waits for two others, and a little for one that should not come.
    before: async (write) => {
      if (write > 0) return
      most = Math.max(most, ++running)
      await new Promise<void>((resolve) => {
        if (held.push(resolve) === 3) setTimeout(endAll, 20)
      })
      running -= 1
    },
  })
  const answers = await Promise.all(Array.from({ length: 6 }, async () => await ask(gateway)))
  t.strictSame(answers.map(({ status }) => status), Array.from({ length: 6 }, () => 200))
  t.strictSame(seenBy(gateway), [6, 6])
  t.equal(most, 3)
})

t.test('what is wrong with one request takes no place, and asks each account once', async (t) => {
  const refusals: ReadonlyArray<readonly [status: number, message: string]> = [
    [402, 'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 30104.'],
    [429, 'Request too large for gpt-5 in organization org-x on tokens per min (TPM): Limit 9, Requested 10.'],
  ]
  for (const [status, message] of refusals) {
    const upstreams = [{ account: 'one' }, { account: 'one' }, { account: 'two' }]
    const gateway = await startPool(t, { rules: inOrder, members: 3, upstreams })
    const [first, second, third] = gateway.members
    if (first === undefined || second === undefined || third === undefined) throw new Error('no members')
    first.respond = second.respond = () => ({ status, body: { error: { message } } })
    const allCame = new Promise<void>((resolve) => {
      third.respond = () => ({
        before: async () => {
          if (third.seen.length === 5) resolve()
          await Promise.race([allCame, wait(2_000)])
        },
      })
    })
    const answers = await Promise.all(Array.from({ length: 5 }, async () => await ask(gateway)))
    t.strictSame(answers.map(({ status }) => status), [200, 200, 200, 200, 200])
    t.strictSame(seenBy(gateway), [5, 0, 5])
    third.respond = first.respond
    t.equal((await ask(gateway)).status, status)
    t.strictSame(seenBy(gateway), [6, 0, 6])
  }
})

t.test('who waits for a place and finds none in time gets the failure that came first', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { attempts: 2, deadlineMs: 120_000 } })
  const [first, second] = gateway.members
  if (first === undefined || second === undefined) throw new Error('no members')
  first.respond = () => ({ ...overloaded, before: async () => await wait(50) })
  let open = (): void => {}
  const gate = new Promise<void>((resolve) => { open = resolve })
  second.respond = () => ({ before: async () => await gate })
  const answered = { times: 0 }
  const answers = Array.from({ length: 5 }, async () => {
    const { status } = await ask(gateway)
    answered.times += 1
    return status
  })
  for (const until = Date.now() + 30_000; answered.times < 2 && Date.now() < until;) await wait(20)
  t.equal(answered.times, 2, 'long before the deadline')
  open()
  t.strictSame((await Promise.all(answers)).toSorted(), [200, 200, 200, 503, 503])
  t.strictSame(seenBy(gateway), [5, 3])
})

t.test('a caller that leaves while its retry waits takes no place', async (t) => {
  const around: Surroundings = {
    bindings: new Bindings(null, () => {}),
    budget: new RetryBudget(),
    attempted: () => {},
    failedOver: () => {},
    now: () => 0,
    random: () => 0,
  }
  const health = new HealthRegistry()
  const upstreams = readUpstreams({ a: { url: 'http://a' }, b: { url: 'http://b' } })
  const pool = readPools({ p: { members: ['a', 'b'] } }, upstreams, health).get('p')
  if (pool === undefined) throw new Error('no pool')
  const requests = Array.from({ length: 5 }, () => new PoolAttempts(pool, requestTo('/v1/models', { method: 'GET' }), {}, false, around))
  const retries = requests.map(async (attempts) => {
    await attempts.next()
    const waitMs = await attempts.failed({ kind: 'transport', error: new Error('refused'), sent: false })
    return waitMs === null ? 'refused' : 'retried'
  })
  const [first, , , fourth, fifth] = requests
  // No timer runs before all of this is over: who waits would be sent away by one.
  await Promise.all(retries.slice(0, 3))
  fourth?.over('left')
  first?.over('complete')
  t.strictSame(await Promise.all(retries), ['retried', 'retried', 'retried', 'refused', 'retried'], 'the fifth has the place of the first')
  fifth?.over('complete')
})

t.test('retries are a fifth of what runs, and three always', async () => {
  fc.assert(fc.property(fc.array(fc.constantFrom('begin', 'end', 'take', 'give')), (steps) => {
    const budget = new RetryBudget()
    let running = 0
    let retries = 0
    return steps.every((step) => {
      if (step === 'begin') running += 1
      else if (step === 'end' && running > 0) running -= 1
      else if (step === 'give' && retries > 0) retries -= 1
      else if (step !== 'take') return true
      if (step !== 'take') {
        budget[step]()
        return true
      }
      const expected = retries < Math.max(3, Math.floor(running / 5))
      if (expected) retries += 1
      return budget.take() === expected
    })
  }))
})

t.test('of so many requests so many may be retries', async (t) => {
  for (const [running, retries] of [[0, 3], [19, 3], [20, 4], [24, 4], [25, 5], [100, 20]] as const) {
    const budget = new RetryBudget()
    for (let i = 0; i < running + 5; i += 1) budget.begin()
    for (let i = 0; i < 5; i += 1) budget.end()
    let taken = 0
    while (budget.take()) taken += 1
    t.equal(taken, retries, `of ${running}`)
  }
})

t.test('a retry that waits makes no room for itself', async (t) => {
  const budget = new RetryBudget()
  for (let i = 0; i < 20; i += 1) budget.begin()
  for (let i = 0; i < 4; i += 1) budget.take()
  const told: string[] = []
  const wait = (name: string): void => {
    const placed = (): void => {
      budget.leave(placed)
      told.push(name)
    }
    budget.wait(placed)
  }
  wait('first')
  wait('second')
  budget.give()
  t.same(told, [], 'of 18 that run three are retries')
  budget.give()
  t.same(told, ['first'])
  budget.give()
  t.same(told, ['first', 'second'])
  t.equal(budget.take(), true, 'of 20 again a fourth one may run')
  for (let i = 0; i < 4; i += 1) budget.begin()
  t.equal(budget.take(), false, 'of 24 no fifth one')
})

function allowance (budget: RetryBudget): Allowance {
  return new Allowance(3, 60_000, { budget, now: () => 0 })
}

t.test('however requests come, wait and leave, no place is lost and none is given twice', async () => {
  const oneStep = fc.tuple(fc.constantFrom('begin', 'retry', 'retry', 'over'), fc.nat(5))
  // Fewer steps hardly ever make one wait.
  await fc.assert(fc.asyncProperty(fc.array(oneStep, { maxLength: 60, size: 'max' }), async (steps) => {
    const budget = new RetryBudget()
    const shares = new Map<number, Allowance>()
    const retrying = new Set<Allowance>()
    const asking = new Set<Allowance>()
    let most = 3
    let isRight = true
    async function retry (share: Allowance): Promise<void> {
      asking.add(share)
      const may = share.mayRetry() || await share.place()
      asking.delete(share)
      // It may be over by the time it hears of its place.
      if (!may || ![...shares.values()].includes(share)) return
      retrying.add(share)
      isRight &&= retrying.size <= most
    }
    const waiting: Array<Promise<void>> = []
    for (const [step, which] of steps) {
      const share = shares.get(which)
      if (step === 'begin' && share === undefined) shares.set(which, allowance(budget))
      most = Math.max(most, Math.floor(shares.size / 5))
      if (share === undefined) continue
      if (step === 'retry' && !asking.has(share)) waiting.push(retry(share))
      if (step === 'over') {
        retrying.delete(share)
        shares.delete(which)
        share.over()
      }
      await null
    }
    for (const share of shares.values()) {
      retrying.delete(share)
      share.over()
    }
    await Promise.all(waiting)
    const all = Array.from({ length: 4 }, () => allowance(budget))
    return isRight && all.map((share) => share.mayRetry()).join() === 'true,true,true,false'
  }))
})
