/** The community's price list, read as it is. */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { decimalText, one, times } from '../../plugins/core/money/decimal.js'
import type { TokenUsage } from '../../plugins/core/types.js'
import { priceBill } from '../../plugins/costs/bill.js'
import type { PriceRow } from '../../plugins/costs/price-row.js'
import { PriceTable } from '../../plugins/costs/price-table.js'
import { noTokens } from '../metrics/requests.js'

const table = new PriceTable({ files: [fileURLToPath(new URL('../fixtures/costs/community.json', import.meta.url))] })

function row (model: string): PriceRow {
  const [found] = table.entry(model)?.rows ?? []
  if (found === undefined) throw new Error(`no entry ${model}`)
  return found
}

function perMillion (rates: PriceRow['sheet']['rates']): Record<string, string> {
  return Object.fromEntries([...rates].map(([name, rate]) => [name, decimalText(times(rate, { units: 1_000_000, places: 0 }))]))
}

function total (
  model: string, usage: Partial<TokenUsage>, tier: string | null = null, speed: string | null = null, region: string | null = null
): string | null {
  const served = { tier, speed, region, counts: {}, tools: null, statedCost: null }
  const priced = priceBill({ usage: { ...noTokens, ...usage }, modalities: null, served, factor: one }, row(model))
  return priced?.total == null || priced.unpriced ? null : decimalText(priced.total)
}

t.test('what is no model is passed over', async (t) => {
  t.equal(table.entry('sample_spec'), null)
  t.equal(table.entry('fallback_generalizations'), null)
})

t.test('a name that stands for another model has its prices', async (t) => {
  t.equal(total('newest', { input: 10 }), total('plain', { input: 10 }))
  t.equal(table.digest(row('newest')), table.digest(row('plain')))
  t.equal(table.entry('of-nothing'), null)
})

t.test('prices of a token by class', async (t) => {
  t.strictSame(perMillion(row('plain').sheet.rates), {
    input: '2.5',
    tool_input: '2.5',
    output: '10',
    cache_read: '0.125',
    cache_write_5m: '3.125',
    cache_write: '3.125',
    cache_write_1h: '5',
    reasoning: '10',
  })
})

t.test('reasoning is output unless it has a price of its own', async (t) => {
  t.equal(total('own-reasoning', { reasoning: 10 }), '0.00003')
  t.equal(total('own-reasoning', { input: 128_001, reasoning: 10 }), null, 'which an entry does not tell above its threshold')
  t.equal(total('same-reasoning', { input: 128_001, reasoning: 10 }), '0.256082')
})

t.test('thresholds and tiers of the list apply as it means them', async (t) => {
  const cases: ReadonlyArray<readonly [string, Partial<TokenUsage>, string | null, string | null]> = [
    ['tiered', { input: 272_000, output: 1 }, null, '0.544008'],
    ['tiered', { input: 1, cache_read: 272_000, output: 1 }, null, '0.108816'],
    ['tiered', { input: 10, output: 1 }, 'flex', '0.000014'],
    ['tiered', { input: 10, cache_read: 1 }, 'flex', null],
    ['tiered', { input: 272_001 }, 'flex', '0.544002'],
    ['tiered', { input: 1, output: 272_001 }, 'flex', '1.088005'],
    ['tiered', { input: 272_001, output: 1 }, 'flex', null],
    ['tiered', { input: 10 }, 'priority', '0.00004'],
    ['tiered', { input: 272_001 }, 'priority', null],
    ['tiered', { input: 10 }, 'batch', '0.00001'],
    ['tiered', { input: 10 }, 'scale', null],
    ['inclusive', { input: 199_999 }, null, '0.599997'],
    ['inclusive', { input: 200_000 }, null, '1.2'],
    ['million', { input: 90_000 }, null, '0.09'],
    ['million', { input: 90_001 }, null, '0.180002'],
    ['million', { input: 128_001 }, null, '0.384003'],
    ['million', { input: 1_000_001 }, null, '4.000004'],
    ['ranged', { input: 256_000 }, null, '0.0128'],
    ['ranged', { input: 256_001, output: 1 }, null, '0.06400225'],
  ]
  for (const [model, usage, tier, cost] of cases) t.equal(total(model, usage, tier), cost, `${model} ${JSON.stringify(usage)} ${tier}`)
})

t.test('writes that are kept for 12 hours have the price of that', async (t) => {
  t.equal(total('kept', { input: 10, cache_write: 100, cache_write_1h: 10 }), '0.0016')
  t.equal(total('kept', { input: 272_000, cache_write_1h: 10 }), '5.4405')
  t.equal(total('kept', { input: 10, cache_write_1h: 10 }, 'flex'), '0.000175')
})

t.test('a price of audio above a threshold leaves those of all else as they are', async (t) => {
  const cases: ReadonlyArray<readonly [Partial<TokenUsage>, string | null, string | null]> = [
    [{ input: 200_001, cache_read: 10, output: 10, reasoning: 10 }, null, '0.0600506'],
    [{ input: 200_001, output: 10 }, 'priority', '0.10804554'],
    [{ input: 200_001, output: 10 }, 'batch', '0.03001265'],
  ]
  for (const [usage, tier, cost] of cases) t.equal(total('audio-step', usage, tier), cost, String(tier))
  t.equal(perMillion(row('audio-step').sheet.above[0]?.rates ?? new Map())['input_audio'], '0.3')
  t.match(perMillion(row('audio-step').sheet.rates), { cache_read_audio: '0.1', cache_read_image: '0.04' })
})

t.test('a kind with a price of its own keeps it in tiers and above thresholds that name none', async (t) => {
  const drawing = row('drawing')
  const sheetOf = (tier: string): PriceRow['sheet'] | undefined => Object(drawing.tiers.get(tier)).sheet
  const cases: ReadonlyArray<readonly [PriceRow['sheet']['rates'] | undefined, Record<string, string>]> = [
    [drawing.sheet.above[0]?.rates, { input: '4', output: '18', output_image: '120' }],
    [sheetOf('flex')?.rates, { input: '1', output: '6', output_image: '120' }],
    [sheetOf('flex')?.above[0]?.rates, {}],
    [sheetOf('priority')?.rates, { output: '21.6', output_image: '216' }],
  ]
  for (const [rates = new Map(), wanted] of cases) {
    const { tool_input: ofTools, reasoning, ...told } = perMillion(rates)
    t.strictSame(told, wanted)
  }
})

t.test('regions and speeds of the list are factors', async (t) => {
  t.equal(total('regional', { input: 1000, cache_write_1h: 10 }, 'standard', 'fast', 'us'), '0.01122')
  t.equal(total('regional', { input: 1000 }, null, null, 'eu'), null)
})

t.test('what is charged by the piece', async (t) => {
  const each = (model: string): Record<string, string> => Object.fromEntries([...row(model).each].map(([name, price]) => [
    name, decimalText(price),
  ]))
  t.strictSame(each('pictures'), { image: '0.04' })
  t.strictSame(each('old-pictures'), { image: '0.02' })
  t.strictSame(each('seconds'), { second: '0.0001' })
  t.strictSame(each('searching'), { request: '0.005', file_search: '0.0025', search: '0.01' })
  t.strictSame(each('coding'), { container: '0.03' }, 'that of its provider')
  t.strictSame(each('by-prompt'), { searched: '0.035' })
  t.strictSame(each('by-default'), { searched: '0.035' }, 'as Google does unless it is said')
  t.strictSame(each('by-query'), { search: '0.014' })
  t.strictSame(each('by-size'), {}, 'no reply tells how much a search brought')
})

t.test('prices that change by the hour are none', async (t) => {
  t.equal(total('by-the-hour', { input: 1 }), null)
})

t.test('numbers as programs write them are read with all of their digits', async (t) => {
  const path = t.testdir({
    'list.json': `{
      "computed": {
        "litellm_provider": "x", "input_cost_per_token": 8.000000000000001e-07, "output_cost_per_token": 2.0000000000000002e-07,
        "tiered_pricing": [{ "range": [128000, 256000.0], "input_cost_per_token": 1.1428571428571428e-06 }],
        "input_cost_per_second": 0.0005666666666666667, "search_context_cost_per_query": { "low": 0.0033333333333333335 }
      }
    }`,
  })
  const [found] = new PriceTable({ files: [`${path}/list.json`] }).entry('computed')?.rows ?? []
  if (found === undefined) throw new Error('no entry')
  t.match(perMillion(found.sheet.rates), { input: '0.8000000000000001', output: '0.20000000000000002' })
  t.match(perMillion(found.sheet.above[0]?.rates ?? new Map()), { input: '1.1428571428571428' })
  t.strictSame([...found.each].map(([name, price]) => [name, decimalText(price)]), [
    ['second', '0.0005666666666666667'], ['search', '0.0033333333333333335'],
  ])
  const bill = { usage: { ...noTokens, input: 3, output: 7 }, modalities: null, served: null, factor: one }
  t.equal(decimalText(priceBill(bill, found)?.total ?? one), '0.00000380000000000000044')
})

t.test('an entry is read the same in whatever order it stands, and no more than it says', async (t) => {
  const entry = {
    litellm_provider: 'x',
    mode: 'chat',
    input_cost_per_image: 0.5,
    file_search_cost_per_1k_calls: null,
    input_cost_per_token_above_272k_tokens: 4e-6,
    input_cost_per_token_above_128k_tokens: 2e-6,
    input_cost_per_token: 1e-6,
    output_cost_per_token: 2e-5,
    output_cost_per_token_above_128k_tokens: 3e-5,
  }
  const tenfold = { ...entry, output_cost_per_reasoning_token: 2e-6 }
  const other = { ...entry, output_cost_per_reasoning_token: 2e-5, output_cost_per_reasoning_token_above_128k_tokens: 5e-5 }
  const path = t.testdir({ 'list.json': JSON.stringify({ entry, tenfold, other }) })
  const list = new PriceTable({ files: [`${path}/list.json`] })
  const costOf = (model: string, usage: Partial<TokenUsage>): string | null => {
    const bill = { usage: { ...noTokens, ...usage }, modalities: null, served: null, factor: one }
    const priced = priceBill(bill, list.entry(model)?.rows[0] ?? null)
    return priced?.total == null || priced.unpriced ? null : decimalText(priced.total)
  }
  t.equal(costOf('entry', { input: 128_001 }), '0.256002')
  t.equal(costOf('entry', { input: 272_001 }), '1.088004')
  t.equal(list.entry('entry')?.rows[0]?.each.size, 0, 'a picture that a chat is shown is none that it draws')
  t.equal(costOf('tenfold', { input: 128_001, reasoning: 1 }), null, 'reasoning for a tenth of the price is no output')
  t.equal(costOf('other', { input: 128_001, reasoning: 1 }), '0.256052')
})

t.test('a range that begins with no whole number of tokens is refused', async (t) => {
  for (const from of [-1, 0.5, '0', null]) {
    const list = { odd: { litellm_provider: 'x', tiered_pricing: [{ range: [from, 9], input_cost_per_token: 1e-6 }] } }
    const path = t.testdir({ 'list.json': JSON.stringify(list) })
    t.throws(() => new PriceTable({ files: [`${path}/list.json`] }), { message: /whole number of tokens/ }, String(from))
  }
})

t.test('a model that the list has twice is read as its makers read it: the last', async (t) => {
  const entry = (price: number): string => `"twice": { "litellm_provider": "x", "mode": "chat", "input_cost_per_token": ${price} }`
  const path = t.testdir({ 'list.json': `{ ${entry(1e-6)}, ${entry(2e-6)} }` })
  const [found] = new PriceTable({ files: [`${path}/list.json`] }).entry('twice')?.rows ?? []
  t.equal(decimalText(found?.sheet.rates.get('input') ?? one), '0.000002')
})
