/** What the console tells of costs and budgets. */
import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { budgetTables } from '../../plugins/console/budget-rows.js'
import type { Gateway } from '../../plugins/core/gateway.js'
import type { BudgetStatus } from '../../plugins/core/money/budget-status.js'
import type { LlmGatewayOptions } from '../../plugins/index.js'
import type { Key } from '../../plugins/core/types.js'
import { IssuedBudgets } from '../../plugins/limits/budget-status.js'
import { memoryBalances, memoryKeys } from '../../plugins/state/index.js'
import type { Balances, KeyRecord } from '../../plugins/state/types.js'
import { secret, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

const usage = { prompt_tokens: 1_000, completion_tokens: 500, total_tokens: 1_500 }
const groups = {
  all: {
    protocols: ['chat_completions' as const],
    labels: { team: 'search' },
    limits: { budgets: [{ cost: 500, period: 'month' as const, timezone: 'Asia/Kathmandu' }, { tokens: 2_000, period: 'total' as const }] },
  },
}
const keys = [
  { id: 'plain', group: 'all', secret },
  { id: 'shop', group: 'all', secret: `${secret}-2`, labels: { team: 'shop' }, limits: { budgets: [{ cost: 1, period: 'day' as const }] } },
]

async function start (t: Test, options: Partial<LlmGatewayOptions> = {}) {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, {
    console: { path: '/console' },
    metrics: { labels: ['team'] },
    prices: { models: { dear: { input: 1, output: 2 }, cheap: { input: 0.1, output: 0.2 } } },
    groups,
    keys,
    ...options,
  })
  const ask = async (model: string, credential: string): Promise<number> => {
    upstream.queue({
      headers: { 'content-type': 'application/json' }, body: { id: 'c', object: 'chat.completion', model, choices: [], usage },
    })
    const headers = { authorization: `Bearer ${credential}` }
    const { statusCode } = await app.inject({
      method: 'POST',
      url: '/v1/chat/completions',
      headers,
      payload: { model, max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] },
    })
    await settled.next()
    return statusCode
  }
  const tables = async (costs = '') => (await app.inject(`/console/data?costs=${costs}`)).json().tables
  return { ask, tables }
}

t.test('cost by group and model, and by label, most first; budgets with what is spent, left, and when they begin anew', async (t) => {
  t.intercept(Date, 'now', { value: () => Date.UTC(2026, 1, 18, 12) })
  const { ask, tables } = await start(t)
  t.equal(await ask('cheap', secret), 200)
  t.equal(await ask('dear', `${secret}-2`), 200)
  t.equal(await ask('dear', secret), 403, 'the tokens for ever are spent')
  const { costs, allCosts, labelCosts, budgets } = await tables()
  t.strictSame(allCosts, { rows: 2, totals: [['USD', 0.0022]] })
  t.strictSame(costs, [['all', 'dear', 'USD', 0.002], ['all', 'cheap', 'USD', 0.0002]])
  t.strictSame(labelCosts, [['team', 'shop', 'USD', 0.002], ['team', 'search', 'USD', 0.0002]])
  t.match(budgets, [
    { group: 'all', key: null, unit: 'tokens', period: 'total', amount: 2_000, spent: 3_000, held: 0, resetsAt: null, resets: null },
    {
      group: 'all',
      key: 'shop',
      unit: 'USD',
      period: 'day',
      timezone: 'UTC',
      amount: 1,
      held: 0,
      resetsAt: Date.UTC(2026, 1, 19),
      resets: '2026-02-19 00:00',
    },
    {
      group: 'all',
      key: null,
      unit: 'USD',
      period: 'month',
      timezone: 'Asia/Kathmandu',
      amount: 500,
      held: 0,
      resetsAt: Date.UTC(2026, 1, 28, 18, 15),
      resets: '2026-03-01 00:00',
    },
  ])
  t.strictSame([budgets[1].spent, budgets[2].spent], [0.002, 0.0022])
})

t.test('cost of today, of seven days, of this month, each at most since the start', async (t) => {
  const clock = { now: Date.UTC(2026, 1, 26, 12) }
  t.intercept(Date, 'now', { value: () => clock.now })
  const { ask, tables } = await start(t, { groups: { all: { ...groups.all, limits: {} } } })
  const told = async (costs: string): Promise<unknown> => {
    const { allCosts, labelCosts } = await tables(costs)
    return [allCosts.totals, labelCosts.map(([, value]: readonly string[]) => value)]
  }
  await ask('cheap', secret)
  for (const time of ['', 'today', 'week', 'month', 'constructor']) t.strictSame(await told(time), [[['USD', 0.0002]], ['search']], time)
  clock.now = Date.UTC(2026, 1, 28, 23, 59)
  t.strictSame(await told('today'), [[], []])
  await ask('dear', `${secret}-2`)
  t.strictSame(await told('today'), [[['USD', 0.002]], ['shop']])
  t.strictSame(await told('week'), [[['USD', 0.0022]], ['shop', 'search']], 'since the start')
  clock.now = Date.UTC(2026, 2, 1)
  t.strictSame(await told('month'), [[], []])
  clock.now = Date.UTC(2026, 2, 5)
  t.strictSame(await told('week'), [[['USD', 0.002]], ['shop']], 'from the first of seven days that somebody looked')
  t.strictSame(await told(''), [[['USD', 0.0022]], ['shop', 'search']])
  clock.now = Date.UTC(2026, 2, 4, 23)
  t.strictSame(await told('today'), [[], []], 'a clock that is set back')
})

t.test('an app that goes on counting in the cells of another goes on with its days', async (t) => {
  const clock = { now: Date.UTC(2026, 1, 20, 12) }
  t.intercept(Date, 'now', { value: () => clock.now })
  const options = { groups: { all: { ...groups.all, limits: {} } }, metrics: { cells: {} } }
  const totals = async ({ tables }: Awaited<ReturnType<typeof start>>, costs: string) => (await tables(costs)).allCosts.totals
  const first = await start(t, options)
  await first.ask('cheap', secret)
  clock.now = Date.UTC(2026, 1, 24)
  t.strictSame(await totals(first, 'today'), [])
  const second = await start(t, options)
  await second.ask('dear', secret)
  t.strictSame(await totals(second, 'today'), [['USD', 0.002]])
  t.strictSame(await totals(second, ''), [['USD', 0.0022]])
  t.strictSame(await totals(await start(t, { ...options, metrics: { cells: {} } }), ''), [], 'with others it begins anew')
})

t.test('without labels, prices or budgets these tables are empty', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, { console: { path: '/console' } })
  const { costs, labelCosts, budgets } = (await app.inject('/console/data')).json().tables
  t.strictSame([costs, labelCosts, budgets], [[], [], []])
})

t.test('a state that does not answer takes away its budgets, and nothing else', async (t) => {
  const balances = { ...memoryBalances(), readBucket: async () => { throw new Error('away') } }
  const { tables } = await start(t, { limits: { balances } })
  t.match(await tables(), { budgets: null, costs: { length: 0 }, version: String })
})

t.test('however many look, the state is asked once in two seconds', async (t) => {
  let asked = 0
  const budget: BudgetStatus = {
    group: 'g', key: null, unit: 'tokens', period: 'total', timezone: 'UTC', amount: 4, spent: 0, held: 1, resetsAt: null,
  }
  const tables = budgetTables(async () => {
    asked += 1
    return { budgets: [budget], more: 3, isCut: true }
  })
  for (const now of [0, 1, 1_999]) {
    t.strictSame(await tables(now), { budgets: [{ ...budget, resets: null }], moreBudgets: 3, budgetsCut: true })
  }
  t.equal(asked, 1)
  await tables(2_000)
  t.equal(asked, 2)
})

t.test('of very many configured budgets, too, the nearest to their limits are told, wherever they stand', async (t) => {
  const many = Object.fromEntries(Array.from(
    { length: 220 },
    (_, at) => [`g${at}`, { protocols: ['chat_completions' as const], limits: { budgets: [{ tokens: 5, period: 'day' as const }] } }]
  ))
  const balances: Balances = { ...memoryBalances(), readBucket: async (_id, group) => ({ spent: group === 'g219' ? 5 : 0, held: 0 }) }
  const { tables } = await start(t, { groups: { ...groups, ...many }, limits: { balances } })
  const { budgets, moreBudgets, budgetsCut } = await tables()
  t.match(budgets[0], { group: 'g219', spent: 5 })
  t.same([budgets.length, moreBudgets, budgetsCut], [200, 23, false])
})

function issued (id: string, more: Partial<KeyRecord> = {}): KeyRecord {
  const limits = { budgets: [{ tokens: 2_000, period: 'month' as const }] }
  const digest = createHash('sha256').update(id).digest('hex')
  return { id, digest, group: 'all', disabled: false, expiresAt: null, limits, label: null, createdAt: 0, ...more }
}

t.test('budgets of issued keys are among them, of those that can still spend', async (t) => {
  t.intercept(Date, 'now', { value: () => Date.UTC(2026, 1, 18, 12) })
  const store = memoryKeys()
  for (const record of [
    issued(secret), issued('idle'), issued('off', { disabled: true }), issued('over', { expiresAt: Date.UTC(2026, 1, 18, 12) }),
    issued('soon over', { expiresAt: Date.UTC(2026, 1, 18, 13) }), issued('free', { limits: {} }),
  ]) await store.create(record)
  const { ask, tables } = await start(t, { groups: { all: { protocols: ['chat_completions'] } }, keys: [], store })
  t.equal(await ask('cheap', secret), 200)
  const { budgets, moreBudgets, budgetsCut } = await tables()
  const reset = { resetsAt: Date.UTC(2026, 2, 1), resets: '2026-03-01 00:00' }
  t.match(budgets[0], { group: 'all', key: secret, unit: 'tokens', period: 'month', amount: 2_000, spent: 1_500, held: 0, ...reset })
  t.same(budgets.slice(1).map(({ key, spent }: BudgetStatus) => `${key} ${spent}`).sort(), ['idle 0', 'soon over 0'])
  t.same([moreBudgets, budgetsCut], [0, false])
})

t.test('of very many issued keys the nearest to their limits are told, and how many more there are', async (t) => {
  let [asked, listed, isAway] = [0, 0, false]
  const balances: Balances = {
    ...memoryBalances(),
    readBucket: async (_id, _group, key) => {
      asked += 1
      if (isAway) throw new Error('away')
      return { spent: Number(key), held: 0 }
    },
  }
  const keys = async function * (count: number, more: Partial<KeyRecord> = {}): AsyncGenerator<Key> {
    listed += 1
    for (let at = 0; at < count; at += 1) yield issued(String(at), more)
  }
  const store: Pick<Gateway, 'issuedKeys'> = { issuedKeys: () => keys(250) }
  const issuedBudgets = new IssuedBudgets(balances, store)
  const { budgets, more, isCut } = await issuedBudgets.read('USD', 0)
  t.same(budgets.map(({ key }) => key), Array.from({ length: 100 }, (_, at) => String(249 - at)))
  t.same([more, isCut], [150, false])
  t.equal((await issuedBudgets.read('USD', 9_999)).more, 150)
  t.same([asked, listed], [250, 1], 'asked once in ten seconds')
  store.issuedKeys = () => keys(2_000)
  t.match(await issuedBudgets.read('USD', 10_000), { more: 900, isCut: true })
  t.equal(asked, 1_250)
  store.issuedKeys = () => keys(10_001, { limits: {} })
  t.strictSame(await issuedBudgets.read('USD', 20_000), { budgets: [], more: 0, isCut: true })
  store.issuedKeys = () => keys(1)
  isAway = true
  await t.rejects(issuedBudgets.read('USD', 30_000), { message: 'away' })
  isAway = false
  t.match(await issuedBudgets.read('USD', 30_001), { budgets: [{ key: '0' }] }, 'and asked again at once')
  store.issuedKeys = null
  t.strictSame(await issuedBudgets.read('USD', 50_000), { budgets: [], more: 0, isCut: false })
})
