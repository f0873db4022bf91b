/** Every rule of a price list against sums that were worked out by hand. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import type { Served } from '../../plugins/core/money/cost.js'
import { decimalText, one, readDecimal } from '../../plugins/core/money/decimal.js'
import type { ModalityTokens, TokenUsage } from '../../plugins/core/types.js'
import { priceBill, type Bill } from '../../plugins/costs/bill.js'
import { plainSum } from '../../plugins/costs/plain-bill.js'
import type { PriceRow } from '../../plugins/costs/price-row.js'
import { Place } from '../../plugins/costs/place.js'
import { readRows } from '../../plugins/costs/read-row.js'
import { noTokens } from '../metrics/requests.js'

type Kinds = ReadonlyArray<readonly ['input' | 'output', string, number, number?]>

interface Case {
  name: string
  row: object | null
  usage?: Partial<TokenUsage>
  modalities?: Kinds
  served?: Partial<Served>
  tools?: { usage: Partial<TokenUsage>, modalities: Kinds }
  factor?: string
  parts: Record<string, string | null> | null
  total: string | null
}

const cases: Case[] = parse(readFileSync(new URL('../fixtures/costs/bills.yaml', import.meta.url), 'utf8'))

function kindsOf (kinds: Kinds): ModalityTokens[] {
  return kinds.map(([direction, modality, tokens, cached]) => ({ direction, modality, tokens, ...cached !== undefined && { cached } }))
}

function billOf ({ row, usage, modalities = [], served, tools, factor }: Case): { bill: Bill, row: PriceRow | null } {
  const problems: string[] = []
  const rows = row === null ? [] : readRows(row, new Place('', (path, message) => problems.push(`${path}: ${message}`)), 'USD')
  if (problems.length > 0) throw new Error(problems.join('\n'))
  const toolTokens = tools === undefined ? null : { usage: { ...noTokens, ...tools.usage }, modalities: kindsOf(tools.modalities) }
  const isTold = served !== undefined || toolTokens !== null
  const kinds = [...kindsOf(modalities), ...toolTokens?.modalities ?? []]
  const bill = {
    usage: usage === undefined ? null : { ...noTokens, ...usage },
    modalities: kinds.length === 0 ? null : kinds,
    served: isTold ? { tier: null, speed: null, region: null, counts: {}, statedCost: null, ...served, tools: toolTokens } : null,
    factor: factor === undefined ? one : readDecimal(factor) ?? one,
  }
  return { bill, row: rows[0] ?? null }
}

for (const each of cases) {
  t.test(each.name, async (t) => {
    const { bill, row } = billOf(each)
    const priced = priceBill(bill, row)
    const sum = row === null ? null : plainSum(bill, row)
    t.ok(sum === null || (each.total === decimalText(sum) && priced?.unpriced === false), 'a sum alone is the same')
    if (each.parts === null) {
      t.equal(priced, null)
      return
    }
    t.strictSame(Object.fromEntries(priced?.parts.map(({ name, amount }) => [name, amount]) ?? []), each.parts)
    t.equal(priced?.total == null ? null : decimalText(priced.total), each.total)
    t.equal(priced?.unpriced, Object.values(each.parts).includes(null))
  })
}

t.test('what tools used is apart, with or without a split or a price', async (t) => {
  const tools = { usage: { ...noTokens, output: 3 }, modalities: [] }
  const served = { tier: null, speed: null, region: null, counts: {}, statedCost: null, tools }
  const used = { usage: { ...noTokens, input: 5, output: 3 }, modalities: null, served, factor: one }
  t.match(priceBill(used, null), { total: null, unpriced: true })
  const all = (n: number): TokenUsage => ({
    input: n, cache_read: n, cache_write_5m: n, cache_write_1h: n, cache_write: n, tool_input: n, output: n, reasoning: n,
  })
  const each = priceBill({ ...used, usage: all(5), served: { ...served, tools: { usage: all(2), modalities: [] } } }, null)
  t.strictSame(each?.parts.map(({ units }) => units), [...Array(8).fill(3), ...Array(8).fill(2)], 'of each kind of token')
  const top = new Place('', (_, message) => t.fail(message))
  const [row = null] = readRows({ input: 1, output: 1, output_image: 2, tools: { output: 4 } }, top, 'USD')
  const parts = (bill: Bill): unknown => priceBill(bill, row)?.parts.map(({ name, amount }) => [name, amount])
  t.strictSame(parts(used), [['input', '0.000005'], ['tools.output', '0.000012']])
  const beside = { ...used, served: { ...served, tools: { ...tools, model: 'dear' } as const } }
  t.strictSame(parts(beside), [['input', '0.000005'], ['output', '0.000003'], ['tools.output', '0.000012']])
})
