/** The sum of a plain bill is what its lines add up to, and nothing else has one. */
import fc from 'fast-check'
import t from 'tap'
import { decimalText, one, type Decimal } from '../../plugins/core/money/decimal.js'
import { leaves } from '../../plugins/core/call/measures.js'
import { priceBill, type Bill } from '../../plugins/costs/bill.js'
import { plainSum } from '../../plugins/costs/plain-bill.js'
import type { PriceRow } from '../../plugins/costs/price-row.js'
import { Place } from '../../plugins/costs/place.js'
import { readRows } from '../../plugins/costs/read-row.js'
import { noTokens } from '../metrics/requests.js'

const noneServed = { tier: null, speed: null, region: null, counts: {}, tools: null, statedCost: null }
const plain: Bill = { usage: { ...noTokens, input: 1_000, output: 10 }, modalities: null, served: null, factor: one }
const audio = [{ direction: 'input', modality: 'audio', tokens: 7 }] as const
const prices = { input: 1.25, cache_read: 0.125, output: 10 }

function rowOf (given: object): PriceRow {
  const [row] = readRows(given, new Place('', (path, message) => { throw new Error(`${path}: ${message}`) }), 'USD')
  if (row === undefined) throw new Error('no row')
  return row
}

function textOf (sum: Decimal | null | undefined): string | null {
  return sum == null ? null : decimalText(sum)
}

t.test('a bill of nothing but tokens at common prices is summed on the fast path', async (t) => {
  const cases: ReadonlyArray<readonly [string, Bill, object]> = [
    ['tokens alone', plain, prices],
    ['served as it is by default', { ...plain, served: { ...noneServed, tier: 'standard', counts: { search: 0, image: 2 } } }, prices],
    ['kinds of content that have no price of their own', { ...plain, modalities: audio }, prices],
    ['a price of a kind that was not told', plain, { ...prices, input_audio: 5 }],
    ['prices of what was not counted', plain, { ...prices, each: { search: 1 } }],
    ['another way to be served', plain, { ...prices, tiers: { flex: 0.5 } }],
  ]
  for (const [name, bill, row] of cases) t.equal(textOf(plainSum(bill, rowOf(row))), '0.00135', name)
  t.equal(textOf(plainSum(plain, rowOf({ ...prices, above: [{ inputTokens: 999, input: 2, output: 20 }] }))), '0.0022')
  t.equal(textOf(plainSum(plain, rowOf({ input: 0, output: 0 }))), '0')
})

t.test('any other bill takes the general path', async (t) => {
  const tools = { usage: { ...noTokens, output: 3 }, modalities: [] }
  const cases: ReadonlyArray<readonly [string, Bill, object]> = [
    ['no tokens', { ...plain, usage: noTokens }, prices],
    ['no usage', { ...plain, usage: null }, prices],
    ['a factor', { ...plain, factor: { units: 11, places: 1 } }, prices],
    ['a tier', { ...plain, served: { ...noneServed, tier: 'flex' } }, prices],
    ['a speed', { ...plain, served: { ...noneServed, speed: 'fast' } }, prices],
    ['a region', { ...plain, served: { ...noneServed, region: 'us' } }, prices],
    ['tools', { ...plain, served: { ...noneServed, tools } }, prices],
    ['searches', { ...plain, served: { ...noneServed, counts: { search: 1 } } }, prices],
    ['searches in files', { ...plain, served: { ...noneServed, counts: { file_search: 1 } } }, prices],
    ['containers', { ...plain, served: { ...noneServed, counts: { container: 1 } } }, prices],
    ['seconds', { ...plain, served: { ...noneServed, counts: { second: 1 } } }, prices],
    ['a price of each request', plain, { ...prices, each: { request: 1 } }],
    ['a kind with a price of its own', { ...plain, modalities: audio }, { ...prices, output_audio: 5 }],
    ['no price for one leaf', plain, { input: 1 }],
    ['a sum that a number does not hold', { ...plain, usage: { ...noTokens, input: 999_999_999_999 } }, { input: 123.456789012 }],
    ['prices that a number does not hold', plain, { input: 1e-15, output: 9999 }],
  ]
  for (const [name, bill, row] of cases) t.equal(plainSum(bill, rowOf(row)), null, name)
})

const tokens = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 6, arbitrary: fc.nat(2_000_000) }, fc.nat(999_999_999_999))
const price = fc.option(fc.oneof(fc.nat(100), fc.integer({ min: 1, max: 99_999 }).map((some) => some / 10_000)), { freq: 20 })
const word = fc.constantFrom(null, 'standard', 'flex')

t.test('where there is a sum, it is that of the lines', async (t) => {
  let sums = 0
  fc.assert(fc.property(
    fc.array(tokens, { minLength: 8, maxLength: 8 }), fc.array(price, { minLength: 16, maxLength: 16 }), word,
    (counts, rates, tier) => {
      const usage = { ...noTokens, ...Object.fromEntries(leaves.map(({ type }, at) => [type, counts[at] ?? 0])) }
      const ratesFrom = (first: number): object => Object.fromEntries(
        leaves.flatMap(({ type }, at) => rates[first + at] == null ? [] : [[type, rates[first + at]]])
      )
      const row = rowOf({ ...ratesFrom(0), above: [{ inputTokens: 200_000, ...ratesFrom(8) }] })
      const bill = { usage, modalities: null, served: tier === null ? null : { ...noneServed, tier }, factor: one }
      const sum = plainSum(bill, row)
      if (sum === null) return true
      sums += 1
      const lines = priceBill(bill, row)
      return lines?.unpriced === false && textOf(lines.total) === decimalText(sum)
    }
  ), { numRuns: 20_000 })
  t.ok(sums > 1_000, `${sums} sums`)
})
