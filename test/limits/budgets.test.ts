/** Budgets through the front: what is let in, what is charged, what a caller and an operator hear of it. */
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import type { Pricing } from '../../plugins/core/money/pricing.js'
import type { Limits } from '../../plugins/core/types.js'
import { memoryBalances } from '../../plugins/core/balances/memory.js'
import type { Account, Balances, HoldAsk } from '../../plugins/core/balances/types.js'
import type { BudgetEvent } from '../../plugins/limits/index.js'
import type { LlmGatewayOptions } from '../../plugins/index.js'
import { everyProtocol, secret, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { messages, post, pricingBy, setup, type Given, type Setup } from './setup.js'

const day = 24 * 60 * 60_000
/** In the middle of a day, a week and a month. */
const noon = Date.UTC(2026, 10, 18, 12)

/** 80 tokens. */
const reply = {
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 50, completion_tokens: 30, total_tokens: 80 },
}

/** The clock of this process stands, until a test moves it. */
function clock (t: Test): { now: number } {
  const clock = { now: noon }
  // Not `t.intercept`, which notes the stack of each call.
  const { now } = Date
  Date.now = () => clock.now
  t.teardown(() => { Date.now = now })
  return clock
}

/** Each token costs a billionth; each request of the test's upstream is told to have used so many. */
function priced (setup: Setup, billionths: (model: string | null) => number | null = () => 80, pricing: Partial<Pricing> = {}): void {
  const gateway = gatewayOf(setup.app)
  const { estimate = (llm, input, output) => billionths(llm.model) === null ? null : input + output, currency, ...others } = pricing
  gateway.pricing = { ...pricingBy(estimate, currency), ...others }
  const cost = { amount: null, currency: 'USD', parts: [], unpriced: false, entry: null, by: null, price: null, factor: '1' }
  gateway.settlement.add('costs', (llm) => {
    const amount = billionths(llm.model)
    if (amount === null) return
    const told = { ...cost, billionths: amount }
    llm.cost = { value: null, billionths: amount, currency: 'USD', unpriced: false, exact: told }
  })
}

const dayBucket = (unit: string, date: string): string => `${unit} day UTC ${date}`

async function gateway (t: Test, given: Given): Promise<Setup & { events: BudgetEvent[], metrics: () => Promise<string> }> {
  const events: BudgetEvent[] = []
  const made = await setup(t, { ...given, limits: { onBudget: (event) => { events.push(event) }, ...given.limits } })
  made.upstream.respond = () => ({ body: reply })
  const quiet = async (): Promise<Account> => {
    for (let key; ;) {
      const now = await made.account(key)
      if (now.held > 0 || now.active > 0) await new Promise((resolve) => setTimeout(resolve, 5))
      else if (key === undefined) key = 'caller'
      else return now
    }
  }
  return { ...made, quiet, events, metrics: async () => await (await fetch(`${made.url}/metrics`)).text() }
}

t.test('tokens of a day: held, settled, refused with the budget and its end, and begun anew by the calendar alone', async (t) => {
  const time = clock(t)
  const budgets = [{ tokens: 200, period: 'day' as const }]
  const { chat, quiet, balances, events, metrics } = await gateway(t, { group: { budgets } })
  const spending = async (date: string): Promise<unknown> => await balances.readBucket(dayBucket('tokens', date), 'all')
  t.equal((await chat({ max_tokens: 100 })).status, 200)
  await quiet()
  t.same(await spending('2026-11-18'), { spent: 80, held: 0 })
  t.equal((await chat({ max_tokens: 80 })).status, 200)
  await quiet()
  const refused = await chat({ max_tokens: 80 })
  t.match(refused, { status: 403, headers: { 'x-should-retry': 'false' }, json: { error: { code: 'budget_exceeded' } } })
  t.equal(
    refused.json['error']?.['message'],
    'Out of budget: the budget of its group for this day (UTC) is spent, or what is left is less than this request may cost. ' +
      'It resets at 2026-11-19T00:00:00Z.'
  )
  t.match(
    events,
    [{ group: 'all', key: null, unit: 'tokens', currency: null, period: 'day', timezone: 'UTC', start: '2026-11-18', percent: 80 }],
    '50 and 80 in one step are one warning'
  )
  const text = await metrics()
  t.match(text, 'llm_gateway_limit_rejections_total{group="all",limit="budget"} 1')
  t.match(text, 'llm_gateway_budget_warnings_total{group="all",period="day",percent="80"} 1')
  t.match(text, 'llm_gateway_budget_remaining_ratio{group="all",period="day"} 0.2')
  time.now += day / 2 - 1
  t.equal((await chat({ max_tokens: 80 })).status, 403, 'to the last moment')
  time.now += 1
  t.match(await metrics(), 'llm_gateway_budget_remaining_ratio{group="all",period="day"} 1')
  t.equal((await chat({ max_tokens: 80 })).status, 200)
  await quiet()
  t.same(await spending('2026-11-19'), { spent: 80, held: 0 })
  time.now -= 1
  t.equal((await chat({ max_tokens: 80 })).status, 403, 'a clock that is set back finds the period as it was')
  t.same(await spending('2026-11-18'), { spent: 160, held: 0 })
})

t.test('each of several budgets begins anew with its own period, wherever the clock is set', async (t) => {
  const time = clock(t)
  const budgets = [{ tokens: 100, period: 'hour' as const }, { tokens: 250, period: 'day' as const }]
  const { chat, quiet } = await gateway(t, { group: { budgets } })
  const asks = async (tokens: number): Promise<number> => {
    const { status } = await chat({ max_tokens: tokens })
    await quiet()
    return status
  }
  t.same([await asks(60), await asks(60)], [200, 403], 'of the first hour')
  time.now += day / 24
  t.equal(await asks(100), 403, 'more than an hour has')
  time.now -= 1
  t.equal(await asks(60), 403, 'the first hour once more')
  time.now += 1
  t.same([await asks(60), await asks(60)], [200, 403], 'of the second hour')
  time.now += day / 24
  t.same([await asks(60), await asks(60)], [200, 403], 'of the third')
  time.now += day / 24
  t.equal(await asks(60), 403, 'of the day nothing is left')
  time.now += day / 2
  t.equal(await asks(60), 200)
})

t.test('a request is settled in the period in which it was held', async (t) => {
  const time = clock(t)
  time.now += day / 2 - 10_000
  const { chat, quiet, balances, upstream } = await gateway(t, { key: { budgets: [{ tokens: 200, period: 'day' }] } })
  const spending = async (date: string): Promise<unknown> => await balances.readBucket(dayBucket('tokens', date), 'all', 'caller')
  let goOn: () => void = () => {}
  const waiting = new Promise<void>((resolve) => { goOn = resolve })
  upstream.queue({ body: reply, before: async () => await waiting })
  const answer = chat({ max_tokens: 100 })
  await upstream.requests.next()
  time.now += 20_000
  const { spent, held } = await balances.readBucket(dayBucket('tokens', '2026-11-18'), 'all', 'caller')
  t.ok(spent === 0 && held >= 100, `${held}`)
  goOn()
  await answer
  await quiet()
  t.same(await spending('2026-11-18'), { spent: 80, held: 0 })
  t.same(await spending('2026-11-19'), { spent: 0, held: 0 })
})

t.test('money: held at an estimate, settled to what it cost, whichever budget is spent first', async (t) => {
  clock(t)
  const given: Limits = {
    budgets: [
      { cost: 0.000001, period: 'month', timezone: 'Europe/Berlin' }, { tokens: 1_000_000, period: 'day' }, { cost: 1, period: 'total' },
    ],
  }
  const made = await gateway(t, { group: given, key: { budgets: [{ cost: 0.5, period: 'week' }] } })
  priced(made, () => 500)
  const { chat, quiet, balances, records, events } = made
  t.equal((await chat({ max_tokens: 400 })).status, 200)
  await quiet()
  t.same(await balances.readBucket('cost:USD month Europe/Berlin 2026-11', 'all'), { spent: 500, held: 0 })
  t.same(await balances.readBucket('cost:USD total UTC ', 'all'), { spent: 500, held: 0 })
  t.same(await balances.readBucket('cost:USD week UTC 2026-11-16', 'all', 'caller'), { spent: 500, held: 0 })
  t.match(await records(), [{ charged: 80, chargedCost: 500 }])
  t.match(events, [{ unit: 'cost', currency: 'USD', period: 'month', timezone: 'Europe/Berlin', start: '2026-11', percent: 50 }])
  const refused = await chat({ max_tokens: 600 })
  t.match(refused, {
    status: 403,
    json: {
      error: {
        code: 'budget_exceeded',
        message: 'Out of budget: the budget of its group for this month (Europe/Berlin) is spent, ' +
          'or what is left is less than this request may cost. It resets at 2026-11-30T23:00:00Z.',
      },
    },
  })
  t.equal((await chat({ max_tokens: 400 })).status, 200)
  await quiet()
  t.equal(events.at(-1)?.percent, 100)
  t.match(await chat({ max_tokens: 1 }), { status: 403 })
})

t.test('the store is asked once, or for a place first where the body is large; what is sent is paid for by whoever is gone', async (t) => {
  const asks: HoldAsk[] = []
  const store = memoryBalances()
  const hold: Balances['hold'] = (ask) => {
    asks.push(ask)
    return store.hold(ask)
  }
  const made = await gateway(t, { group: { budgets: [{ cost: 1, period: 'day' }] }, limits: { balances: { ...store, hold } } })
  priced(made)
  for (const content of ['hi', 'x'.repeat(70_000)]) {
    const body = { model: 'm', messages: [{ role: 'user', content }], max_tokens: 100 }
    t.equal((await made.chat(body)).status, 200)
    const sent = Math.ceil(JSON.stringify(body).length / 4)
    const all = { tokens: sent + 100, floor: sent, cost: sent + 100, costFloor: sent }
    const place = { requests: 1, isFirst: true, tokens: 0, floor: 0, cost: 0, costFloor: 0 }
    t.match(asks.splice(0), content === 'hi' ? [{ ...place, ...all }] : [place, { requests: 0, isFirst: false, ...all }])
  }
})

t.test('a budget for ever says so; the status is the option\'s', async (t) => {
  const { chat, quiet } = await gateway(t, { key: { budgets: [{ tokens: 100, period: 'total' }] }, limits: { balanceStatus: 429 } })
  await chat({ max_tokens: 10 })
  await quiet()
  t.match(await chat({ max_tokens: 50 }), {
    status: 429,
    headers: { 'x-should-retry': 'false' },
    json: {
      error: {
        message: 'Out of budget: the budget of this API key for its whole life is spent, ' +
          'or what is left is less than this request may cost. It does not reset.',
      },
    },
  })
})

t.test('where a spent budget is 429, it says when it makes sense to come again', async (t) => {
  clock(t)
  const { chat, url } = await gateway(t, { group: { budgets: [{ tokens: 10, period: 'day' }] }, limits: { balanceStatus: 429 } })
  t.match(await chat(), { status: 429, headers: { 'retry-after': String(12 * 60 * 60), 'x-should-retry': 'false' } })
  const body = { contents: [{ parts: [{ text: 'hi' }] }] }
  const gemini = await post(`${url}/v1beta/models/m:generateContent`, body, { 'x-goog-api-key': secret })
  t.match(gemini, { status: 429, json: { error: { details: [{}, { retryDelay: '43200s' }] } } })
})

t.test('a model without a price is refused where a budget is in money, unless models without are let through on purpose', async (t) => {
  clock(t)
  const group: Limits = { budgets: [{ cost: 1, period: 'day' }] }
  const some = await gateway(t, { group })
  priced(some, (model) => model === 'm' ? null : 5)
  t.match(await some.chat(), { status: 403, json: { error: { code: 'model_not_priced' } } })
  t.match(await some.metrics(), 'llm_gateway_limit_rejections_total{group="all",limit="price"} 1')
  t.equal((await some.chat({ model: 'priced' })).status, 200)
  const open = await gateway(t, { group })
  priced(open, () => null, { unpriced: 'allow' })
  t.equal((await open.chat()).status, 200)
  await open.quiet()
  t.same(await open.balances.readBucket(dayBucket('cost:USD', '2026-11-18'), 'all'), { spent: 0, held: 0 })
})

t.test('a budget in money is refused at the start where nothing has a price, and at its request where only a look-up knows of it', async (
  t
) => {
  const upstream = await startUpstream(t)
  const budgets: Limits = { budgets: [{ tokens: 5, period: 'day' }, { cost: 1, period: 'day' }] }
  const groups = { free: { protocols: everyProtocol }, paid: { protocols: everyProtocol, limits: budgets } }
  const plain = { groups: { free: groups.free }, keys: [] }
  const start = async (options: Partial<LlmGatewayOptions>): Promise<FastifyInstance> => {
    const { app } = await startGateway(t, upstream.url, { ...plain, ...options })
    await app.ready()
    return app
  }
  const code = 'LLM_GATEWAY_OPTION'
  const noPrices = join(t.testdir({ 'prices.yaml': 'models: {}' }), 'prices.yaml')
  await t.rejects(start({ groups }), { code, message: /groups\.paid\.limits\.budgets\[1\]\.cost needs prices/ })
  const keys = [{ id: 'a', group: 'free', secret: 'sk-a' }, { id: 'b', group: 'free', secret, limits: budgets }]
  await t.rejects(start({ keys }), { code, message: /keys\[1\]\.limits\.budgets\[1\]\.cost needs prices/ })
  for (const prices of [{}, { currency: 'EUR' }, { files: [noPrices], models: {}, unpriced: 'allow' as const }]) {
    await t.rejects(start({ groups, prices }), { code, message: /needs prices/ }, 'price lists without an entry')
  }
  await start({ groups, keys, prices: { models: { m: { input: 1 } } } })
  const app = await start({ lookup: async () => ({ id: 'c', group: 'free', limits: { budgets: [{ cost: 1, period: 'day' }] } }) })
  const answer = await app.inject({
    method: 'POST', url: '/v1/chat/completions', headers: { authorization: `Bearer ${secret}` }, payload: { model: 'm', messages },
  })
  t.match(answer.json(), { error: { code: 'model_not_priced' } })
})

t.test('a reply that breaks off costs what was told and relayed of it, never all that was held and never nothing', async (t) => {
  clock(t)
  const made = await gateway(t, { group: { budgets: [{ cost: 1, period: 'day' }] } })
  priced(made, () => null, { estimate: (_, input, output) => input + output * 10 })
  made.upstream.respond = () => ({ body: reply, cutAt: 60 })
  await made.chat({ max_tokens: 1_000 }).catch(() => {})
  await made.quiet()
  const { spent } = await made.balances.readBucket(dayBucket('cost:USD', '2026-11-18'), 'all')
  t.ok(spent > 0 && spent < 1_000, `${spent}`)
})

t.test('2,000 requests at once on a budget for 50 serve exactly 50', async (t) => {
  clock(t)
  const made = await gateway(t, { group: { budgets: [{ cost: 0.000005, period: 'day' }] } })
  priced(made, () => 100, { estimate: () => 100 })
  const headers = { authorization: `Bearer ${secret}` }
  const payload = { model: 'm', messages, max_tokens: 1 }
  const ask = async (): Promise<number> =>
    (await made.app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload })).statusCode
  const statuses = await Promise.all(Array.from({ length: 2_000 }, ask))
  t.equal(statuses.filter((status) => status === 200).length, 50)
  t.equal(statuses.filter((status) => status === 403).length, 1_950)
  await made.quiet()
  t.same(await made.balances.readBucket(dayBucket('cost:USD', '2026-11-18'), 'all'), { spent: 5_000, held: 0 })
  t.same(made.events.map(({ percent }) => percent), [50, 80, 100], 'each once')
})

t.test('a budget that is lowered below what is spent warns at the request that it refuses, and shows that nothing is left', async (t) => {
  clock(t)
  const budgets = [{ tokens: 1_000, period: 'day' as const }]
  const made = await gateway(t, { group: { budgets } })
  t.equal((await made.chat({ max_tokens: 10 })).status, 200)
  await made.quiet()
  t.same(made.events, [])
  const lowered = await gateway(t, { group: { budgets: [{ tokens: 60, period: 'day' }] }, limits: { balances: made.balances } })
  for (let at = 0; at < 2; at += 1) t.equal((await lowered.chat({ max_tokens: 10 })).status, 403)
  t.match(lowered.events, [{ group: 'all', key: null, unit: 'tokens', period: 'day', percent: 100 }])
  t.equal(lowered.events.length, 1)
  const text = await lowered.metrics()
  t.match(text, 'llm_gateway_budget_warnings_total{group="all",period="day",percent="100"} 1')
  t.match(text, 'llm_gateway_budget_remaining_ratio{group="all",period="day"} 0')
})

t.test('a budget in money is counted by itself in each currency; requests that run are settled in theirs', async (t) => {
  clock(t)
  const budgets = [{ cost: 0.000001, period: 'day' as const }]
  const dollars = await gateway(t, { group: { budgets } })
  priced(dollars, () => 900)
  t.equal((await dollars.chat({ max_tokens: 10 })).status, 200)
  await dollars.quiet()
  t.equal((await dollars.chat({ max_tokens: 200 })).status, 403)
  const euros = await gateway(t, { group: { budgets }, limits: { balances: dollars.balances } })
  priced(euros, () => 300, { currency: 'EUR' })
  t.equal((await euros.chat({ max_tokens: 200 })).status, 200)
  await euros.quiet()
  t.same(await dollars.balances.readBucket(dayBucket('cost:USD', '2026-11-18'), 'all'), { spent: 900, held: 0 })
  t.same(await dollars.balances.readBucket(dayBucket('cost:EUR', '2026-11-18'), 'all'), { spent: 300, held: 0 })
  gatewayOf(euros.app).pricing = pricingBy((_, input, output) => input + output)
  t.equal((await euros.chat({ max_tokens: 200 })).status, 403, 'back in dollars what was spent in them is there')
})

t.test('a budget in money that an older version counted goes on from what was spent of it', async (t) => {
  clock(t)
  const made = await gateway(t, { group: { budgets: [{ cost: 0.000001, period: 'day' }] } })
  priced(made, () => 10, { currency: 'EUR' })
  const bucket = { id: dayBucket('cost', '2026-11-18'), unit: 'cost', amount: 1_000, endsAt: noon + day / 2, scope: 'group' } as const
  await made.balances.settle({ id: 'old', group: 'all', key: 'caller', tokens: 1, cost: 900, late: ['group'], lateBuckets: [bucket] })
  t.equal((await made.chat({ max_tokens: 200 })).status, 403)
  t.equal((await made.chat({ max_tokens: 50 })).status, 200)
  await made.quiet()
  t.same(await made.balances.readBucket(dayBucket('cost:EUR', '2026-11-18'), 'all'), { spent: 910, held: 0 })
})

t.test('a hook that throws, or whose promise fails, harms nothing', async (t) => {
  const lines: string[] = []
  for (const onBudget of [() => { throw new Error('at once') }, async () => { throw new Error('later') }]) {
    const { chat, quiet } = await gateway(t, {
      group: { budgets: [{ tokens: 100, period: 'day' }] },
      limits: { onBudget },
      server: { logger: { level: 'warn', stream: { write: (line) => { lines.push(line) } } } },
    })
    await chat({ max_tokens: 10 })
    await quiet()
    await new Promise(setImmediate)
  }
  t.match(lines.map((line) => JSON.parse(line)), [
    { level: 40, msg: 'a budget has reached 80 %', budget: { group: 'all', percent: 80 } },
    { msg: 'limits.onBudget failed', err: { message: 'at once' } },
    { level: 40 },
    { msg: 'limits.onBudget failed', err: { message: 'later' } },
  ])
})

t.test('a budget may be as small as a billionth, however a number so small is written', async (t) => {
  clock(t)
  for (const [cost, amount] of [[1e-7, 100], [1.5e-8, 15], [1e-9, 1]] as const) {
    const made = await gateway(t, { group: { budgets: [{ cost, period: 'day' }] } })
    let estimate = amount + 1
    priced(made, () => 1, { estimate: () => estimate })
    t.equal((await made.chat({ max_tokens: 1 })).status, 403, String(cost))
    estimate = amount
    t.equal((await made.chat({ max_tokens: 1 })).status, 200, String(cost))
  }
})

t.test('a budget that is wrong is named', async (t) => {
  const cases: ReadonlyArray<readonly [budget: object, said: RegExp]> = [
    [{ cost: 0, period: 'day' }, /limits\.budgets\[0\]\.cost must be a number above 0/],
    [{ cost: -1, period: 'day' }, /\.cost must be/],
    [{ cost: NaN, period: 'day' }, /\.cost must be/],
    [{ cost: '5', period: 'day' }, /\.cost must be/],
    [{ cost: 1e-10, period: 'day' }, /\.cost must be/],
    [{ cost: 9_100_000, period: 'day' }, /\.cost must be/],
    [{ tokens: 0, period: 'day' }, /\.tokens must be a whole number of at least 1/],
    [{ tokens: 1.5, period: 'day' }, /\.tokens must be/],
    [{ tokens: '5', period: 'day' }, /\.tokens must be/],
    [{ period: 'day' }, /budgets\[0\] must have cost or tokens/],
    [{ cost: 1, tokens: 1, period: 'day' }, /budgets\[0\] must have cost or tokens/],
    [{ cost: 1, period: 'year' }, /\.period must be one of hour, day, week, month, total/],
    [{ cost: 1 }, /\.period must be one of/],
    [{ cost: 1, period: 'day', timezone: 'Mars/Olympus' }, /\.timezone is not a time zone/],
    [{ cost: 1, period: 'day', zone: 'UTC' }, /\.zone is not known/],
  ]
  for (const [budget, said] of cases) {
    await t.rejects(
      setup(t, { group: { budgets: [Object(budget)] } }), { code: 'LLM_GATEWAY_OPTION', message: said }, JSON.stringify(budget)
    )
  }
  await t.rejects(setup(t, { group: { budgets: Object('none') } }), /limits\.budgets must be a list/)
  await t.rejects(
    setup(t, { group: { budgets: [{ cost: 1, period: 'day' }, { cost: 2, period: 'day', timezone: 'UTC' }] } }),
    /\[1\] has the unit, the period and the time zone of another one/
  )
  await t.rejects(
    setup(t, { group: { budgets: ['Europe/Berlin', 'europe/berlin'].map((timezone) => ({ cost: 1, period: 'day', timezone })) } }),
    /\[1\] has the unit, the period and the time zone of another one/, 'in whatever letters'
  )
  const many = Array.from({ length: 17 }, () => ({ cost: 1, period: 'day' as const }))
  await t.rejects(setup(t, { group: { budgets: many } }), /has more than 16 budgets/)
})
