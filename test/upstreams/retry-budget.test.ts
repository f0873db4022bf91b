/** Retries are bounded by what runs. One that finds no place waits for it, as a healthy member may still serve it. */
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { Allowance } from '../../plugins/upstreams/allowance.js'
import { RetryBudget } from '../../plugins/upstreams/retry-budget.js'
import { call, listen, read } from '../helpers/gateway.js'
import { ask, inOrder, overloaded, seenBy, startPool } from './pool-gateway.js'

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

t.test('who waits for a place and finds none in time gets the failure that came first', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, pool: { deadlineMs: 2_000 } })
  const [first, second] = gateway.members
  if (first === undefined || second === undefined) throw new Error('no members')
  first.respond = () => ({ ...overloaded, before: async () => await wait(50) })
  second.respond = () => ({ stallAt: 'headers' })
  const answers = await Promise.all(Array.from({ length: 5 }, async () => await ask(gateway)))
  t.strictSame(answers.map(({ status }) => status), [503, 503, 503, 503, 503])
  t.strictSame(seenBy(gateway), [5, 3])
})

t.test('a caller that leaves while its retry waits takes no place', async (t) => {
  const gateway = await startPool(t, { rules: inOrder })
  const [first, second] = gateway.members
  if (first === undefined || second === undefined) throw new Error('no members')
  const origin = await listen(gateway.app)
  let release = (): void => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  first.respond = () => overloaded
  second.respond = () => ({ before: async () => await held })
  const body = JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] })
  const running = Array.from({ length: 4 }, () => call(`${origin}/v1/chat/completions`, { body }))
  const replies = running.map(async ({ reply }) => (await read(await reply)).bytes.length)
  while (second.seen.length < 3 || first.seen.length < 4) await wait(5)
  await wait(50)
  const left = call(`${origin}/v1/chat/completions`, { body })
  const gone = left.reply.catch((error: unknown) => error)
  while (first.seen.length < 5) await wait(5)
  await wait(50)
  left.request.destroy()
  await gone
  await wait(50)
  release()
  await Promise.all(replies)
  t.strictSame(seenBy(gateway), [5, 4], 'three at once, and the fourth behind them')
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

function allowance (budget: RetryBudget): Allowance {
  return new Allowance(3, 60_000, { budget, now: () => 0 })
}

t.test('however requests come, wait and leave, no place is lost and none is given twice', async () => {
  await fc.assert(fc.asyncProperty(fc.array(fc.tuple(fc.constantFrom('begin', 'retry', 'over'), fc.nat(9))), async (steps) => {
    const budget = new RetryBudget()
    const shares = new Map<number, Allowance>()
    const retrying = new Set<Allowance>()
    let most = 3
    let isRight = true
    async function retry (share: Allowance): Promise<void> {
      if (!share.mayRetry() && !await share.place()) return
      retrying.add(share)
      isRight &&= retrying.size <= most
    }
    const waiting: Array<Promise<void>> = []
    for (const [step, which] of steps) {
      const share = shares.get(which)
      if (step === 'begin' && share === undefined) shares.set(which, allowance(budget))
      most = Math.max(most, Math.floor(shares.size / 5))
      if (share === undefined) continue
      if (step === 'retry' && !retrying.has(share)) waiting.push(retry(share))
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
