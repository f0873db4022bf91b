/** Sums of prices to the last digit, against an implementation in another language and against each other. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t from 'tap'
import {
  add, billionthsOf, decimalText, isLess, one, readDecimal, shifted, times, zero, type Decimal,
} from '../../plugins/core/money/decimal.js'
import { leaves } from '../../plugins/core/call/measures.js'
import type { ModalityTokens, TokenUsage } from '../../plugins/core/types.js'
import { priceBill } from '../../plugins/costs/bill.js'
import { rateNames, type PriceRow } from '../../plugins/costs/price-row.js'
import { Place } from '../../plugins/costs/place.js'
import { readRows } from '../../plugins/costs/read-row.js'
import { noTokens } from '../metrics/requests.js'
import { meter } from '../usage/meter-reply.js'
import { repliesIn } from '../usage/truth.js'

const script = fileURLToPath(new URL('independent.py', import.meta.url))
const python = spawnSync('python3', ['--version']).status === 0
const linearRuns = Number(process.env['COST_RUNS'] ?? 20_000)

const rates = {
  input: 1.250001,
  cache_read: 0.125003,
  cache_write_5m: 1.562507,
  cache_write_1h: 2.500011,
  cache_write: 1.562513,
  tool_input: 1.250017,
  output: 10.000019,
  reasoning: 9.999989,
}
/** Two are those of their leaves. */
const kindPrices = {
  input_audio: 4.000003,
  cache_read_audio: 0.400007,
  output_audio: 20.000009,
  input_image: rates.input,
  cache_read_image: 0.900001,
  cache_read_video: rates.cache_read,
  output_image: 30.000013,
}
const step = {
  input: 2.500023,
  cache_read: 0.250029,
  cache_write_5m: 3.125031,
  cache_write_1h: 5.000037,
  cache_write: 3.125041,
  tool_input: 2.500043,
  output: 15.000047,
  reasoning: 14.999953,
}
const flat = rowOf(rates)
const stepped = { ...rates, above: [{ inputTokens: 200_000, ...step }, { inputTokens: 1_000, ...rates, input: 1.3 }] }

function rowOf (prices: object): PriceRow {
  const [row] = readRows(prices, new Place('', (path, message) => { throw new Error(`${path}: ${message}`) }), 'USD')
  if (row === undefined) throw new Error('no row')
  return row
}

function total (usage: TokenUsage, row: PriceRow): Decimal {
  return priceBill({ usage, modalities: null, served: null, factor: one }, row)?.total ?? zero
}

function usageOf (tokens: readonly number[]): TokenUsage {
  const usage = { ...noTokens }
  leaves.forEach(({ type }, at) => { usage[type] = tokens[at] ?? 0 })
  return usage
}

interface Asked {
  readonly leaves: TokenUsage
  readonly row: object
  readonly kinds?: ReadonlyArray<readonly [direction: string, kind: string, tokens: number, cached: number | null]>
}

/** What Python says of the same bills. Its prices are texts, so that nothing of them is a float on the way. */
function independent (bills: readonly Asked[]): string[] {
  const input = JSON.stringify(
    bills,
    (key, value: unknown) => typeof value === 'number' && rateNames.includes(key) && !Number.isInteger(value) ? String(value) : value
  )
  const { stdout, stderr, status } = spawnSync('python3', [script], { input, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

t.test('decimals are read and written exactly, and nothing else is read as one', async (t) => {
  const cases: ReadonlyArray<readonly [string, string | null]> = [
    ['0', '0'], ['1.50', '1.5'], ['2.5e-06', '0.0000025'], ['1E3', '1000'], ['-0.10', '-0.1'], ['-12', '-12'], ['10.00', '10'],
    ['0.001', '0.001'],
    ['', null], ['.5', null], ['1.', null], ['NaN', null], ['1e', null], ['0x1', null], ['1,5', null], ['Infinity', null],
  ]
  for (const [text, shown] of cases) {
    const read = readDecimal(text)
    t.equal(read === null ? null : decimalText(read), shown, text)
  }
  const part = fc.record({ units: fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), places: fc.integer({ min: 0, max: 30 }) })
  fc.assert(fc.property(part, part, part, (a, b, c) => {
    t.strictSame(readDecimal(decimalText(a)), readDecimal(decimalText(shifted({ units: a.units * 1000n, places: a.places }, 3))))
    const [left, right] = [times(add(a, b), c), add(times(a, c), times(b, c))]
    return decimalText(left) === decimalText(right) && isLess(a, add(a, { units: 1n, places: 31 })) && !isLess(a, a)
  }), { numRuns: 300 })
  const billionths: ReadonlyArray<readonly [string, number]> = [
    ['0', 0], ['0.000000001', 1], ['0.0000000001', 1], ['0.0000000010001', 2], ['1.5', 1_500_000_000], ['12', 12_000_000_000],
  ]
  for (const [text, count] of billionths) t.equal(billionthsOf(readDecimal(text) ?? zero), count, text)
})

t.test('a million of the cheapest tokens cost a million times as much as one', async (t) => {
  const row = rowOf({ input: 0, cache_read: 0.005, output: 0 })
  let sum = zero
  for (let request = 0; request < 100_000; request += 1) sum = add(sum, total(usageOf([0, 10]), row))
  t.equal(decimalText(sum), '0.005')
  t.equal(decimalText(total(usageOf([0, 1_000_000]), row)), '0.005')
})

t.test('the sum of costs is the cost of the sum', async (t) => {
  const tokens = new Array<number>(leaves.length).fill(0)
  let sum = zero
  // A generator of its own: the same usages every time, without a million objects of a library.
  let seed = 20_260_101
  for (let run = 0; run < linearRuns; run += 1) {
    const drawn = tokens.map(() => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
      return seed % 4 === 0 ? 0 : seed % 400_000
    })
    drawn.forEach((each, at) => { tokens[at] = Number(tokens[at]) + each })
    sum = add(sum, total(usageOf(drawn), flat))
  }
  t.equal(decimalText(sum), decimalText(total(usageOf(tokens), flat)))
  if (python) t.strictSame(independent([{ leaves: usageOf(tokens), row: rates }]), [decimalText(sum)])
})

t.test('any usage, as Python prices it', { skip: !python && 'python3 is not there' }, async (t) => {
  const drawn = fc.sample(
    fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300_000 }), fc.integer({ min: 0, max: 10 ** 12 })), {
      minLength: 8, maxLength: 8,
    }),
    2_000
  )
    .map(usageOf)
  const row = rowOf(stepped)
  t.strictSame(drawn.map((usage) => decimalText(total(usage, row))), independent(drawn.map((usage) => ({ leaves: usage, row: stepped }))))
})

const whole = { min: 0, max: 1_000 }
const modality = fc.constantFrom('text', 'audio', 'image', 'video')
const tokens = fc.integer(whole)
const anyKind: fc.Arbitrary<ModalityTokens> = fc.oneof(
  fc.record({ direction: fc.constant('output' as const), modality, tokens }),
  fc.record({ direction: fc.constant('input' as const), modality, tokens }),
  fc.record({ direction: fc.constant('input' as const), modality, tokens, cached: tokens })
)

t.test('any kinds of content, as Python prices them', { skip: !python && 'python3 is not there' }, async (t) => {
  const above = [{ inputTokens: 2_000, ...step, input_audio: 8.000017, cache_read_audio: 0.800019 }]
  const row = { ...rates, ...kindPrices, above }
  const read = rowOf(row)
  const leaf = fc.oneof(fc.constant(0), fc.integer(whole))
  const drawn = fc.sample(
    fc.tuple(fc.tuple(leaf, leaf, fc.constant(0), leaf, fc.constant(0), leaf, leaf, leaf), fc.array(anyKind, { maxLength: 5 })), 2_000
  )
  const ours = drawn.map(([leafTokens, modalities]) => {
    const priced = priceBill({ usage: usageOf(leafTokens), modalities, served: null, factor: one }, read)
    return `${decimalText(priced?.total ?? zero)}${priced?.unpriced === true ? '?' : ''}`
  })
  t.strictSame(ours, independent(drawn.map(([leafTokens, kinds]) => ({
    leaves: usageOf(leafTokens),
    row,
    kinds: kinds.map(({ direction, modality, tokens, cached }) => [direction, modality, tokens, cached ?? null] as const),
  }))))
})

const recordings = repliesIn('corpus')

t.test('the recorded replies, as Python prices them', {
  skip: (!python && 'python3 is not there') || (recordings.length === 0 && 'there are no recordings here'),
}, async (t) => {
  const row = rowOf(stepped)
  const told = recordings.filter(({ truth }) => truth.leaves !== null)
  const metered = told.map(({ protocol, bytes }) => {
    const { llm } = meter(protocol, [bytes])
    return decimalText(
      priceBill(
        {
          usage: llm.usage.tokens,
          modalities: llm.usage.modalities,
          served: llm.usage.served === null ? null : { ...llm.usage.served, tier: 'standard', region: 'standard', counts: {}, tools: null },
          factor: one,
        },
        row
      )?.total ??
        zero
    )
  })
  t.strictSame(
    metered, independent(told.map(({ truth }) => ({ leaves: usageOf(leaves.map(({ type }) => truth.leaves?.[type] ?? 0)), row: stepped })))
  )
  const tiers = new Set(told.map(({ protocol, bytes }) => meter(protocol, [bytes]).llm.usage.served?.tier ?? 'standard'))
  t.strictSame([...tiers], ['standard'], 'each was served at the standard tier')
})
