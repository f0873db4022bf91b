import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { one, readDecimal } from '../../plugins/core/money/decimal.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { Forecast } from '../../plugins/costs/forecast.js'
import { PriceTable } from '../../plugins/costs/price-table.js'
import { atMost } from '../../plugins/costs/at-most.js'
import { costOf } from '../../plugins/costs/pricing.js'
import { requestFor } from '../usage/meter-reply.js'
import { noTokens } from '../metrics/requests.js'

function answered (asked: string | null, replied: string | null, protocol = 'chat_completions'): ModelCall {
  const llm = requestFor(protocol)
  llm.model = asked
  llm.usage.responseModel = replied
  llm.usage.tokens = { ...noTokens, input: 1000, output: 10 }
  return llm
}

interface Taking {
  readonly alias?: string | null
  readonly factor?: string
}

/** Requests for `ours` may go to upstreams that call it so, at such factors. */
function forecastOf (table: PriceTable, takers: readonly Taking[] = [], allowsUnpriced = false): Forecast {
  return new Forecast({
    table,
    takersOf: (llm) => takers.map(({ alias }, at) => ({
      name: String(at), models: new Map(alias == null ? [] : [[llm.model ?? '', alias]]),
    })),
    factorOf: (name) => readDecimal(takers[Number(name ?? NaN)]?.factor ?? '1') ?? one,
    allowsUnpriced,
  })
}

t.test('an advisor of a model that has no price is unpriced, whatever the model has that it advised', async (t) => {
  const table = new PriceTable({ models: { m: { input: 1, output: 1 }, late: { input: 1, output: 1, from: '2999-01-01' } } })
  const advised = (asked: string, model: string): ModelCall => {
    const llm = answered(asked, asked)
    const tools = { usage: { ...noTokens, output: 5 }, modalities: [], model }
    llm.usage.served = { tier: null, speed: null, region: null, counts: {}, tools, statedCost: null }
    return llm
  }
  t.match(costOf(table, advised('m', 'm'))?.exact, { amount: '0.001015', unpriced: false })
  for (const model of ['', 'unheard-of', 'late']) {
    t.match(costOf(table, advised('m', model))?.exact, { amount: '0.00101', unpriced: true }, model)
    t.equal(atMost(table, advised('m', model), one), 1_015_000, 'a budget counts what the other one may cost')
  }
  t.match(costOf(table, advised('unheard-of', 'm'))?.exact, { amount: null, unpriced: true })
})

/** What is held is the same as what is told of a reply that broke off. */
function estimated (t: Test, forecast: Forecast, llm: ModelCall, input: number, output: number): number | null {
  const all = forecast.estimate(llm, input, output)
  t.same(forecast.forecast(llm, input, output), all === null ? null : { all, input: forecast.estimate(llm, input, 0) })
  return all
}

t.test('what a reply that broke off told of its input counts at the rates of its leaves, or of their dearest kinds', async (t) => {
  const rates = { input: 2, input_audio: 4, cache_read: 1, cache_write_1h: 8, output: 10 }
  const forecast = forecastOf(new PriceTable({ models: { m: rates } }))
  const llm = answered('m', null)
  llm.usage.tokens = { ...noTokens, input: 100, cache_read: 1_000, tool_input: 10 }
  t.equal(forecast.estimate(llm, 1_115, 1), 100 * 4_000 + 1_000 * 1_000 + 10 * 8_000 + 5 * 8_000 + 10_000)
})

t.test('the model that replied, then the one asked for', async (t) => {
  const table = new PriceTable({
    models: { 'gpt-5': { input: 1, output: 2 }, 'gpt-5-pro': { input: 10, output: 20 }, free: { input: 0, output: 0 } },
  })
  t.hasStrict(costOf(table, answered('gpt-5', 'gpt-5-pro'))?.exact, {
    amount: '0.0102', billionths: 10_200_000, entry: 'gpt-5-pro', by: 'reply', unpriced: false, currency: 'USD', factor: '1',
  })
  t.hasStrict(costOf(table, answered('gpt-5', 'other'))?.exact, { amount: '0.00102', entry: 'gpt-5', by: 'asked' })
  t.hasStrict(costOf(table, answered('gpt-5', null))?.exact, { amount: '0.00102', entry: 'gpt-5', by: 'asked' })
  t.hasStrict(costOf(table, answered('other', null))?.exact, {
    amount: null, billionths: 0, entry: null, by: null, price: null, unpriced: true,
  })
  t.hasStrict(costOf(table, answered(null, null))?.exact, { amount: null, unpriced: true })
  t.hasStrict(costOf(table, answered('free', null))?.exact, { amount: '0', billionths: 0, unpriced: false })
  t.equal(costOf(table, requestFor('chat_completions')), null)
  const nothing = answered('gpt-5', null)
  nothing.usage.tokens = noTokens
  t.equal(costOf(table, nothing), null)
})

t.test('a name that was not told is no name: the prices of any model are for those that have none of their own', async (t) => {
  const table = new PriceTable({
    models: { '*': { input: 1, output: 1 }, 'gpt-5': { input: 2, output: 2 }, inner: { input: 3, output: 3 } },
  })
  t.hasStrict(costOf(table, answered('gpt-5', null))?.exact, { amount: '0.00202', entry: 'gpt-5', by: 'asked' })
  t.hasStrict(costOf(table, answered('other', null))?.exact, { amount: '0.00101', entry: '*', by: 'asked' })
  t.hasStrict(costOf(table, answered(null, null))?.exact, { amount: '0.00101', entry: '*', by: 'asked' })
  const renamed = answered(null, null)
  renamed.routing.sentModel = 'inner'
  t.hasStrict(costOf(table, renamed)?.exact, { amount: '0.00303', entry: 'inner', by: 'alias' })
  t.equal(forecastOf(table).estimate(answered('gpt-5', null), 1_000, 10), 2_020_000)
})

t.test('a model that has a price only by its upstream\'s name for it', async (t) => {
  const table = new PriceTable({
    models: { inner: { input: 3, output: 3 }, dearer: { input: 4, output: 4 }, old: { input: 1, output: 1, until: '2020-01-01' } },
  })
  const estimated = (asked: string | null, ...aliases: Array<string | null>): number | null => {
    const llm = answered(asked, null)
    const forecast = forecastOf(table, aliases.map((alias) => ({ alias })))
    const found = forecast.estimate(llm, 1_000, 10)
    t.equal(forecast.isPriced(llm), found !== null, 'what cannot be estimated is not priced')
    return found
  }
  t.equal(estimated('ours', 'inner'), 3_030_000)
  t.equal(estimated('ours', 'inner', 'dearer', 'inner'), 4_040_000, 'the dearest of those that may take it')
  t.equal(estimated('inner', 'dearer'), 4_040_000, 'a reply may tell the name that its upstream has')
  t.equal(estimated('dearer', 'inner', null), 4_040_000, 'or the one that was asked for')
  t.equal(estimated('inner', 'unheard-of'), 3_030_000, 'by which it has no price, so that it costs what was asked for')
  t.equal(estimated('ours', 'inner', 'unheard-of'), null)
  t.equal(estimated('ours', 'inner', null), null, 'one member knows it by the name that has no price')
  t.equal(estimated('ours', 'old'), null)
  t.equal(estimated('old', 'inner'), null)
  t.equal(estimated('ours'), null)
  t.equal(estimated(null, 'inner'), 3_030_000)
})

t.test('the prices of the time at which a request started', async (t) => {
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
  const rows = (first: string): PriceTable => new PriceTable({
    models: { a: [{ input: 1, output: 1, until: first }, { input: 2, output: 2, from: first }] },
  })
  t.equal(costOf(rows(tomorrow), answered('a', null))?.exact.amount, '0.00101')
  t.equal(costOf(rows('2020-01-01'), answered('a', null))?.exact.amount, '0.00202')
  t.match(costOf(new PriceTable({ models: { a: { input: 1, until: '2020-01-01' } } }), answered('a', null))?.exact, {
    amount: null, entry: 'a', by: 'asked', price: null, unpriced: true,
  })
})

t.test('an estimate that was made before holds no longer than the prices', (t) => {
  const turns = Date.now() + 60_000
  const at = (ms: number): string => new Date(ms).toISOString()
  const table = new PriceTable({
    models: {
      a: [{ input: 1, output: 1, from: at(turns - 120_000), until: at(turns) }, { input: 2, output: 2, from: at(turns) }],
      late: { input: 3, output: 3, from: at(turns) },
    },
  })
  const takers = [{ name: 'main', models: new Map<string, string>() }]
  const steady = new Forecast({ table, takersOf: () => takers, factorOf: () => one, allowsUnpriced: false })
  const estimated = (model: string, startsAt: number, from = steady): number | null => {
    const llm = answered(model, null)
    Object.assign(llm, { arrivedAt: startsAt })
    return from.estimate(llm, 1_000, 0)
  }
  for (const from of [steady, forecastOf(table)]) {
    t.equal(estimated('a', turns - 1, from), 1_000_000)
    t.equal(estimated('a', turns, from), 2_000_000)
    t.equal(estimated('a', turns - 1, from), 1_000_000, 'of a request that started before')
    t.equal(estimated('a', turns - 120_001, from), null)
    t.equal(estimated('late', turns - 1, from), null)
    t.equal(estimated('late', turns, from), 3_000_000)
  }
  for (let made = 0; made < 1_100; made++) t.equal(estimated(`made-up-${made}`, turns), null)
  t.equal(estimated('a', turns), 2_000_000)
  t.end()
})

t.test('the price lists are asked once for a model', (t) => {
  const table = new PriceTable({ models: { a: { input: 1, output: 1 }, '*': { input: 2, output: 2 } } })
  const asked: string[] = []
  const { entry } = table
  table.entry = (name) => {
    asked.push(name)
    return entry.call(table, name)
  }
  const forecast = new Forecast({ table, takersOf: () => takers, factorOf: () => one, allowsUnpriced: false })
  const takers = [{ name: 'main', models: new Map<string, string>() }]
  for (let times = 0; times < 3; times++) {
    t.equal(forecast.estimate(answered('a', null), 1_000, 0), 1_000_000)
    t.equal(forecast.isPriced(answered('b', null)), true)
  }
  t.strictSame(asked, ['a', 'b'])
  t.end()
})

t.test('the parts add up, and billionths are rounded up', async (t) => {
  const table = new PriceTable({ models: { a: { input: 0.000001, output: 3 } } })
  const cost = costOf(table, answered('a', 'a'), readDecimal('1.1') ?? one)?.exact
  t.hasStrict(cost, {
    amount: '0.0000330011',
    billionths: 33_002,
    factor: '1.1',
    parts: [{ name: 'input', units: 1000, amount: '0.0000000011' }, { name: 'output', units: 10, amount: '0.000033' }],
  })
  t.match(cost?.price, /^[0-9a-f]{16}$/)
})

t.test('a request may cost what the dearest of its upstreams does, and once one has it, what that does', async (t) => {
  const table = new PriceTable({ models: { a: { input: 1, output: 1 } } })
  const llm = answered('a', null)
  const at = (...factors: string[]): number | null =>
    estimated(t, forecastOf(table, factors.map((factor) => ({ factor }))), llm, 1_000, 0)
  t.strictSame([at(), at('2', '0.5'), at('0.5', '2'), at('0.5')], [1_000_000, 2_000_000, 2_000_000, 500_000])
  llm.routing.upstream = '1'
  t.equal(at('2', '0.5'), 500_000)
})

t.test('a request may cost what the dearest of the models that it names does, and once one replied, what that does', async (t) => {
  const table = new PriceTable({ models: { cheap: { input: 1, output: 1 }, dear: { input: 100, output: 100 }, half: { input: 1 } } })
  const llm = answered('cheap', null)
  const naming = (others: readonly string[], allowsUnpriced = false): number | null => {
    llm.body.substitutes = others
    return estimated(t, forecastOf(table, [], allowsUnpriced), llm, 1_000, 10)
  }
  t.equal(naming(['cheap']), 1_010_000)
  t.equal(naming(['cheap', 'dear']), 101_000_000)
  t.equal(forecastOf(table).isPriced(llm), true)
  t.equal(naming(['dear', 'unheard-of']), null, 'one of them has no price')
  t.equal(forecastOf(table).isPriced(llm), false)
  t.equal(naming(['half']), null, 'nor have all tokens of this one')
  t.equal(naming(['dear', 'unheard-of'], true), 101_000_000, 'which makes nothing cheaper where such are let through')
  llm.usage.responseModel = 'cheap'
  t.equal(naming(['dear']), 1_010_000)
  llm.usage.responseModel = 'dear'
  t.equal(naming([]), 101_000_000)
})

t.test('an estimate is the most that a request can cost', async (t) => {
  const table = new PriceTable({
    models: {
      chat: {
        input: 1,
        cache_read: 0.1,
        output: 2,
        reasoning: 3,
        above: [{ inputTokens: 1000, input: 2, output: 4 }],
        tiers: { priority: { input: 5, output: 10 }, flex: 0.5, scale: 3 },
        each: { request: 0.5 },
      },
      message: {
        input: 1,
        cache_write: 1.25,
        cache_write_1h: 2,
        output: 5,
        speeds: { fast: { input: 6, output: 30 } },
        regions: { us: 1.1, eu: 0.9 },
      },
      part: { input: 1 },
      stepped: { input: 1, output: 2, above: [{ inputTokens: 1000, input: 2, output: 4 }] },
      lean: { input: 5, output: 1, tiers: { batch: { input: 1, output: 1 }, odd: { input: 1 } } },
      pictures: { each: { image: 0.04 } },
      either: { input: 10, output: 2, each: { image: 0.04 } },
      torn: { input: 10, each: { image: 0.04 } },
      embedding: { input: 0.02 },
    },
  })
  const ask = (protocol: string, model: string, json: unknown, input: number, output: number, factor = '1'): number | null => {
    const llm = requestFor(protocol)
    llm.model = model
    llm.body.json = json
    return estimated(t, forecastOf(table, [{ factor }]), llm, input, output)
  }
  t.equal(ask('chat_completions', 'chat', {}, 1000, 100), 501_300_000)
  t.equal(ask('chat_completions', 'chat', {}, 1001, 100), 502_402_000)
  t.equal(ask('chat_completions', 'chat', {}, 1000, 100, '1.1'), 551_430_000)
  t.equal(ask('chat_completions', 'chat', { service_tier: 'auto' }, 1000, 100), 501_300_000)
  t.equal(ask('chat_completions', 'chat', { service_tier: 'Priority' }, 1000, 100), 506_000_000)
  t.equal(ask('chat_completions', 'chat', { service_tier: 'fast' }, 1000, 100), 506_000_000)
  t.equal(ask('chat_completions', 'chat', { service_tier: 'flex' }, 1000, 100), 501_300_000, 'which may be served as if nothing was asked')
  t.equal(ask('chat_completions', 'chat', { service_tier: 'scale' }, 1000, 100), 503_900_000)
  t.equal(ask('chat_completions', 'chat', { service_tier: 'unheard-of' }, 1000, 100), null)
  t.equal(ask('chat_completions', 'chat', { service_tier: null }, 0, 0), 500_000_000)
  t.equal(ask('messages', 'message', { inference_geo: 'us' }, 1000, 100), 2_750_000)
  t.equal(ask('messages', 'message', { inference_geo: 'eu' }, 1000, 100), 2_500_000)
  t.equal(ask('messages', 'message', { inference_geo: 'asia' }, 1000, 100), null, 'which has no price')
  t.equal(ask('generate_content.generateContent', 'chat', { serviceTier: 'scale' }, 1000, 100), 503_900_000)
  t.equal(ask('generate_content.generateContent', 'chat', { service_tier: 'flex', serviceTier: 'SCALE' }, 1000, 100), 503_900_000)
  t.equal(ask('generate_content.generateContent', 'chat', { serviceTier: 'unheard-of' }, 1000, 100), null)
  t.equal(ask('messages', 'message', { speed: 'fast' }, 1000, 100), 9_000_000)
  t.equal(ask('chat_completions', 'stepped', {}, 1000, 100), 1_200_000)
  t.equal(ask('chat_completions', 'stepped', {}, 1001, 100), 2_402_000)
  t.equal(ask('chat_completions', 'part', undefined, 1000, 100), null)
  t.equal(ask('chat_completions', 'unknown', undefined, 1000, 100), null)
  t.equal(ask('chat_completions', 'lean', { service_tier: 'batch' }, 1000, 100), 5_100_000, 'which may be served as if nothing was asked')
  t.equal(ask('chat_completions', 'lean', { service_tier: 'odd' }, 1000, 100), null)
  t.equal(ask('images', 'pictures', { n: 3 }, 1000, 100), 120_000_000)
  t.equal(ask('images', 'pictures', { n: 2 ** 53 }, 1000, 100), 4e13, 'a server may take it for the most that it makes')
  t.equal(ask('images', 'pictures', { n: 'three' }, 1000, 100), 40_000_000)
  t.equal(ask('images', 'pictures', undefined, 1000, 100), 40_000_000)
  t.equal(ask('images', 'pictures', { n: '1e400' }, 1000, 100), 4e13)
  for (const json of [{ generationConfig: { candidateCount: 1, candidate_count: '3' } }, { generation_config: { candidateCount: 3 } }]) {
    t.equal(ask('generate_content.generateContent', 'pictures', json, 1000, 100), 120_000_000, JSON.stringify(json))
  }
  t.equal(ask('embeddings', 'pictures', undefined, 1000, 0), null)
  t.equal(ask('images', 'either', { n: 3 }, 1000, 100), 120_000_000, 'by the piece, where that is more than its tokens')
  t.equal(ask('images', 'either', {}, 1_000_000, 100), 10_000_200_000)
  t.equal(ask('images', 'torn', {}, 1000, 100), null, 'its reply may tell tokens, of which some have no price')
  t.equal(ask('embeddings', 'embedding', undefined, 1000, 0), 20_000)
  t.equal(ask('embeddings', 'embedding', {}, 1000, 0), 20_000)
})

t.test('what a request may have cost whose tokens have no price', async (t) => {
  const table = new PriceTable({
    models: {
      m: {
        input: 1,
        cache_read: 0.1,
        output: 4,
        above: [{ inputTokens: 5_000, input: 2, output: 8 }],
        tiers: { priority: { input: 200, output: 800 }, scale: 2 },
        each: { file_search: 1 },
      },
      lean: { cache_read: 1 },
      drawing: { input: 1, output: 4, tools: { input: 8, output: 30 } },
    },
  })
  const nothing = { tier: null, speed: null, region: null, counts: {}, tools: null, statedCost: null }
  const told = (usage: Partial<ModelCall['usage']>, asked: object = {}, model = 'm'): [cost: number | undefined, most: number | null] => {
    const llm = answered(model, null)
    llm.body.json = asked
    forecastOf(table).forecast(llm, 1, 1)
    llm.body.json = undefined
    Object.assign(llm.usage, usage)
    return [costOf(table, llm, readDecimal('1.5') ?? one)?.billionths, atMost(table, llm, readDecimal('1.5') ?? one)]
  }
  const tokens = (given: object): Partial<ModelCall['usage']> => ({ tokens: { ...noTokens, input: 1_000, ...given } })
  t.strictSame(told(tokens({ cache_read: 100 })), [1_515_000, 1_515_000], 'all of them have one')
  t.strictSame(told(tokens({ reasoning: 10 })), [1_500_000, 1_560_000], 'those alone that have none')
  t.strictSame(told(tokens({ input: 6_000, tool_input: 1_000 })), [18_000_000, 21_000_000], 'by the size of the input')
  t.strictSame(told({ ...tokens({}), served: { ...nothing, counts: { search: 9, file_search: 1 } } }), [1_501_500_000, 1_501_500_000])
  t.strictSame(told({ ...tokens({ output: 10 }), served: { ...nothing, tier: 'odd' } }), [0, 1_560_000], 'a tier that has none')
  t.strictSame(
    told({ ...tokens({ output: 10 }), served: { ...nothing, tier: 'odd' } }, { service_tier: 'priority' }),
    [0, 312_000_000],
    'or was asked for'
  )
  t.strictSame(told({ ...tokens({ output: 10 }), served: { ...nothing, tier: 'odd' } }, { service_tier: 'scale' }), [0, 3_120_000])
  const tools = { usage: { ...noTokens, output: 10 }, modalities: [] }
  t.strictSame(told({ ...tokens({ output: 10 }), served: { ...nothing, tools } }), [1_500_000, 1_560_000], 'and what tools made')
  const read = { usage: { ...noTokens, cache_read: 10 }, modalities: [] }
  const drawn = { ...tokens({ cache_read: 10 }), served: { ...nothing, tools: read } }
  t.strictSame(told(drawn, {}, 'drawing'), [1_500_000, 1_620_000], 'at the prices of tools, where they have some')
  t.strictSame(told({ tokens: null, served: { ...nothing, counts: { image: 2 } } }), [0, 0])
  t.strictSame(told(tokens({}), {}, 'lean'), [0, null], 'nobody knows')
  t.strictSame(told(tokens({}), {}, 'unknown'), [0, null])
  t.strictSame(told(tokens({}), { service_tier: 'odd' }), [1_500_000, null])
})

t.test('what is held is the same by the rates of a model alone and by all that a request may become', async () => {
  const price = fc.integer({ min: 0, max: 10 ** 9 }).map((units) => units / 10 ** 6)
  const tokens = fc.integer({ min: 0, max: 10 ** 7 })
  const tenths = fc.integer({ min: 1, max: 30 })
  fc.assert(fc.property(price, price, price, tenths, tokens, tokens, (input, audio, output, factor, sent, made) => {
    const rates = { input, input_audio: audio, output }
    const table = new PriceTable({ models: { plain: rates, alike: { ...rates, above: [{ inputTokens: 10 ** 8, ...rates }] } } })
    const forecast = forecastOf(table, [{ factor: String(factor / 10) }])
    const ask = (model: string): ReturnType<Forecast['forecast']> => forecast.forecast(answered(model, null), sent, made)
    const found = ask('plain')
    return found !== null && found.all >= found.input && isDeepStrictEqual(found, ask('alike'))
  }), { numRuns: 2_000 })
})

t.test('what is held is exact also by rates that no number holds', (t) => {
  const table = new PriceTable({ models: { m: { input: 1.00000000000001, output: 2 } } })
  const held = (factor: string): unknown => forecastOf(table, [{ factor }]).forecast(answered('m', null), 1_000_000, 1_000_000)
  // Of one million each: the factor, and three times the factor.
  t.strictSame(held('2'), { all: 6_000_000_001, input: 2_000_000_001 })
  t.strictSame(held('1.00000000000003'), { all: 3_000_000_001, input: 1_000_000_001 })
  t.end()
})

t.test('prices by turns of several models, names and times are those of each alone', (t) => {
  const turns = Date.now() + 60_000
  const at = new Date(turns).toISOString()
  const table = new PriceTable({
    models: { a: [{ input: 1, output: 1, until: at }, { input: 2, output: 2, from: at }], b: { input: 3, output: 3, until: at } },
  })
  const told = (asked: string, replied: string | null, startsAt: number): unknown => {
    const llm = answered(asked, replied)
    Object.assign(llm, { arrivedAt: startsAt })
    const { amount, entry, by } = costOf(table, llm)?.exact ?? {}
    return [amount, entry, by]
  }
  for (let round = 0; round < 2; round++) {
    t.strictSame(told('x', 'a', turns - 1), ['0.00101', 'a', 'reply'])
    t.strictSame(told('x', 'a', turns - 1), ['0.00101', 'a', 'reply'])
    t.strictSame(told('a', null, turns - 1), ['0.00101', 'a', 'asked'])
    t.strictSame(told('a', null, turns), ['0.00202', 'a', 'asked'])
    t.strictSame(told('b', 'a', turns), ['0.00202', 'a', 'reply'])
    t.strictSame(told('x', 'b', turns), [null, 'b', 'reply'])
    t.strictSame(told('x', 'b', turns), [null, 'b', 'reply'])
    t.strictSame(told('x', 'b', turns - 1), ['0.00303', 'b', 'reply'])
  }
  t.end()
})

t.test('tools are counted once for all models that a body names, and each price is looked at once', async (t) => {
  const row = { input: 1, output: 1, each: { search: 0.01, file_search: 0.0025, container: 0.03 } }
  const names = Array.from({ length: 100 }, (_, at) => `m${at}`)
  for (const protocol of ['chat_completions', 'messages', 'responses', 'generate_content']) {
    const forecast = (models: object, json: object): unknown => {
      const llm = requestFor(protocol)
      llm.body.substitutes = names
      llm.body.json = json
      return forecastOf(new PriceTable({ models }), [{ factor: '1' }]).forecast(llm, 0, 0)?.all
    }
    let reads = 0
    const own = { '*': row, ...Object.fromEntries(names.map((name) => [name, row])) }
    t.equal(forecast(own, { tools: [{ get type () { reads += 1; return 'mine' } }] }), 0)
    t.ok(reads > 0 && reads < 20, `${protocol}: ${reads} looks at a tool`)
    reads = 0
    const read = { get () { reads += 1 }, enumerable: true }
    t.equal(forecast({ '*': row }, Object.defineProperties({}, { service_tier: read, serviceTier: read, speed: read })), 0)
    t.ok(reads > 0 && reads < 20, `${protocol}: ${reads} looks at how it is to be served`)
  }
})

t.test('what is held for tools of the provider: each use that a request allows, once where it does not say', async (t) => {
  const table = new PriceTable({
    models: {
      m: { input: 1, output: 1, tiers: { flex: 0.5 }, each: { search: 0.01, file_search: 0.0025, container: 0.03 } },
      once: { input: 1, output: 1, each: { searched: 0.035, file_search: 0.0025 } },
      plain: { input: 1, output: 1 },
    },
  })
  const held = (protocol: string, json: unknown, model = 'm', factor = '1'): number | null => {
    const llm = requestFor(protocol)
    llm.model = model
    llm.body.json = json
    t.equal(forecastOf(table, [{ factor }]).estimate(llm, 0, 0), 0, 'whoever asks for tokens alone hears of no tool')
    return forecastOf(table, [{ factor }]).forecast(llm, 0, 0)?.all ?? null
  }
  const search = { type: 'web_search_20250305', name: 'web_search' }
  t.equal(held('messages', { tools: [{ name: 'mine', input_schema: {} }] }), 0)
  t.equal(held('messages', { tools: [search] }), 10_000_000)
  t.equal(held('messages', { tools: [{ ...search, max_uses: 5 }] }, 'm', '1.1'), 55_000_000)
  t.equal(held('messages', { tools: [{ ...search, max_uses: 5 }] }, 'plain'), 0)
  t.equal(held('messages', { tools: [{ ...search, max_uses: 5 }] }, 'once'), 35_000_000)
  for (const wrong of [0, -1, 1.5, 'five', null]) t.equal(held('messages', { tools: [{ ...search, max_uses: wrong }] }), 10_000_000)
  t.equal(held('messages', { tools: [{ ...search, max_uses: '5' }] }), 50_000_000, 'as servers that read numbers in texts')
  for (const many of [1e15, 2 ** 53, Infinity]) t.equal(held('messages', { tools: [{ ...search, max_uses: many }] }), 1e13)
  for (const tools of [undefined, 'x', [null, 7]]) t.equal(held('messages', { tools }), 0)
  t.equal(held('messages', undefined), 0)
  t.equal(held('responses', { tools: [{ type: 'web_search' }, { type: 'file_search' }], max_tool_calls: 4 }), 50_000_000)
  t.equal(held('responses', { tools: [{ type: 'file_search' }], max_tool_calls: 4 }, 'once'), 10_000_000, 'of files, each by itself')
  t.equal(held('responses', { tools: [{ type: 'web_search_preview' }], service_tier: 'flex' }), 10_000_000)
  for (const type of ['web_search', 'openrouter:web_search']) {
    for (const protocol of ['chat_completions', 'messages', 'responses']) t.equal(held(protocol, { tools: [{ type }] }), 10_000_000)
  }
  t.equal(held('responses', { tools: [{ type: 'x_search' }] }), 10_000_000)
  t.equal(held('responses', { tools: [{ type: 'shell', environment: { type: 'container_auto', memory_limit: '4g' } }] }), 120_000_000)
  const added = [{ tool: { definition: search } }, { tool_changes: [{ tool: { definition: { ...search, max_uses: 2 } } }] }]
  t.equal(held('messages', { messages: [{ content: 'x' }, 'x', { content: added }] }), 30_000_000)
  const items = ['x', { type: 'additional_tools', tools: [{ type: 'web_search' }] }, { tools: null }]
  t.equal(held('responses', { input: items, tools: [{ type: 'web_search' }], max_tool_calls: 4 }), 80_000_000)
  t.equal(held('responses', { input: 'x', tools: [{ type: 'web_search' }] }), 10_000_000)
  const google = ['google_search', 'googleSearch', 'google_search_retrieval', 'googleSearchRetrieval']
  for (const tool of [...google, 'enterpriseWebSearch', 'enterprise_web_search'].map((name) => ({ [name]: {} }))) {
    for (const tools of [[tool], tool]) t.equal(held('generate_content', { tools }, 'once'), 35_000_000)
  }
})
