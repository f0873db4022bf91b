import t from 'tap'
import type { Group, Limits } from '../../plugins/core/types.js'
import { currentBuckets } from '../../plugins/limits/budgets.js'
import { LastKnown } from '../../plugins/limits/last-known.js'
import { Remaining } from '../../plugins/limits/remaining.js'
import { Reread } from '../../plugins/limits/reread.js'
import { memoryBalances, type Balances } from '../../plugins/state/index.js'
import { setup } from './setup.js'

const limits = { balance: 100, budgets: [{ tokens: 50, period: 'total' }] } satisfies Limits

function groupOf (id: string, own: Limits): Group {
  return { id, protocols: new Set(), thirdParty: true, upstream: null, models: null, limits: own, onStoreFailure: 'closed' }
}

/** As another process does, on the same store. */
async function spend (balances: Balances, group: string, id: string, tokens: number): Promise<void> {
  const groupBuckets = currentBuckets(limits, '', Date.now())
  await balances.hold({ group, groupLimits: limits, groupBuckets, key: 'k', keyLimits: {}, id, requests: 1, tokens, floor: 0 })
  await balances.settle({ id, group, key: 'k', tokens, late: [] })
}

t.test('a gateway that was asked for nothing yet tells what is left', async (t) => {
  const balances = memoryBalances()
  await spend(balances, 'all', 'before', 25)
  const { url } = await setup(t, { group: limits, limits: { balances } })
  const text = await (await fetch(`${url}/metrics`)).text()
  t.match(text, 'llm_gateway_balance_remaining_ratio{group="all"} 0.75')
  t.match(text, 'llm_gateway_budget_remaining_ratio{group="all",period="total"} 0.5')
})

t.test('and every 15 seconds what is left then', async (t) => {
  const due: Array<() => void> = []
  const { setInterval } = globalThis
  const value = (step: () => void, ms: number): NodeJS.Timeout => {
    if (ms === 15_000) due.push(step)
    return setInterval(step, ms)
  }
  t.intercept(globalThis, 'setInterval', { value })
  const balances = memoryBalances()
  const { url } = await setup(t, { group: limits, limits: { balances } })
  await spend(balances, 'all', 'meanwhile', 40)
  for (const step of due) step()
  t.match(await (await fetch(`${url}/metrics`)).text(), 'llm_gateway_balance_remaining_ratio{group="all"} 0.6')
})

t.test('what other processes spend and give back is told, of some groups at a time', async (t) => {
  const balances = memoryBalances()
  const remaining = new Remaining(new LastKnown())
  const groups = [groupOf('free', {}), ...Array.from({ length: 60 }, (_, n) => groupOf(`g${n}`, limits))]
  const reread = new Reread(balances, remaining, () => ({ groups, keys: [] }), () => '')
  await spend(balances, 'g0', 'a', 20)
  const groupBuckets = currentBuckets(limits, '', Date.now())
  const ask = { group: 'g1', groupLimits: limits, groupBuckets, key: 'k', keyLimits: {}, requests: 1, floor: 0 }
  await balances.hold({ ...ask, id: 'h', tokens: 10 })
  await reread.some()
  t.equal(remaining.samples().length, 50)
  t.match([remaining.samples()[1], remaining.budgets.samples()[1]], [{ value: 0.9 }, { value: 0.8 }], 'what is held is not left')
  await reread.some()
  const samples = remaining.samples()
  t.equal(samples.length, 60, 'each in its turn')
  t.match(samples[0], { labels: { group: 'g0' }, value: 0.8 })
  t.match(remaining.budgets.samples()[0], { labels: { group: 'g0', period: 'total' }, value: 0.6 })
  await spend(balances, 'g0', 'b', 20)
  await reread.some()
  t.match(remaining.samples()[0], { value: 0.6 }, 'and then the first again')
})

t.test('of very many groups only the first are told before anybody asks for them', async (t) => {
  const remaining = new Remaining(new LastKnown())
  const groups = Array.from({ length: 160 }, (_, n) => groupOf(`g${n}`, n % 2 === 0 ? limits : { budgets: limits.budgets }))
  const reread = new Reread(memoryBalances(), remaining, () => ({ groups, keys: [] }), () => '')
  const told = (): number => new Set([...remaining.samples(), ...remaining.budgets.samples()].map(({ labels }) => labels['group'])).size
  for (let pass = 0; pass < 4; pass += 1) await reread.some()
  t.equal(told(), 100)
  remaining.noteGroup('g150', 100, 7)
  const [bucket] = currentBuckets(limits, '', Date.now()) ?? []
  if (bucket !== undefined) remaining.budgets.set('g151', bucket, 5)
  for (let pass = 0; pass < 3; pass += 1) await reread.some()
  t.equal(told(), 102)
  t.match(remaining.samples().find(({ labels }) => labels['group'] === 'g150'), { value: 1 }, 'what is told is read anew')
  t.match(remaining.budgets.samples().find(({ labels }) => labels['group'] === 'g151'), { value: 1 })
})

t.test('a store that cannot answer changes nothing', async (t) => {
  const remaining = new Remaining(new LastKnown())
  remaining.noteGroup('g', 100, 7)
  const down: Balances = { ...memoryBalances(), read: async () => { throw new Error('down') } }
  await new Reread(down, remaining, () => ({ groups: [groupOf('g', limits)], keys: [] }), () => '').some()
  t.match(remaining.samples(), [{ value: 0.07 }])
})
