import fc from 'fast-check'
import t from 'tap'
import { Counter, Gauge, Histogram } from '../../plugins/metrics/families.js'
import { plainText, renderText } from '../../plugins/metrics/exposition.js'
import { escapeValue } from '../../plugins/metrics/label-tree.js'
import type { CatalogueRow } from '../../plugins/metrics/catalogue.js'
import { newMeters, samplesOf, sumOf, valuesOf } from './meters.js'
import { groupOf, noTokens, settledRequest } from './requests.js'

const row: CatalogueRow = { type: 'counter', help: 'x', labels: ['a', 'b'], unit: '1', aggregator: 'sum', buckets: [0.5, 1] }

function nothing (): void {}

t.test('amounts that are none change nothing', async (t) => {
  const counter = new Counter<['a', 'b']>({ row, maxCells: 10, overflowed: nothing, counted: null })
  const histogram = new Histogram<['a', 'b']>({ row, maxCells: 10, overflowed: nothing, counted: null })
  counter.add(1, 'x', 'y')
  histogram.observe(0.7, 'x', 'y')
  for (const amount of [NaN, -1, Infinity, -Infinity, Number.MAX_VALUE, Number('x')]) {
    counter.add(amount, 'x', 'y')
    histogram.observe(amount, 'x', 'y')
  }
  t.match(counter.read(), [{ value: 1 }])
  t.match(histogram.read(), [{ sum: 0.7, count: 1, buckets: [{ count: 0 }, { count: 1 }, { count: 0 }] }])
})

t.test('a value on a bound belongs to that bucket, one above all bounds to the last', async (t) => {
  const histogram = new Histogram<['a', 'b']>({ row, maxCells: 10, overflowed: nothing, counted: null })
  for (const value of [0, 0.5, 1, 2]) histogram.observe(value, 'x', 'y')
  t.match(histogram.read(), [{ buckets: [{ upTo: 0.5, count: 2 }, { upTo: 1, count: 1 }, { upTo: Infinity, count: 1 }] }])
})

t.test('label sets that a joined key would confuse stay apart', async (t) => {
  const counter = new Counter<['a', 'b']>({ row, maxCells: 10, overflowed: nothing, counted: null })
  counter.add(1, 'x,b:y', '')
  counter.add(10, 'x', 'y,b:')
  t.match(counter.read(), [{ value: 1 }, { value: 10 }])
})

t.test('what could break a text format is written as % and four hex digits', async (t) => {
  const rows = [
    ['plain', 'plain'], ['a,b', 'a%002cb'], ['a"b\\c\nd', 'a%0022b%005cc%000ad'], ['100%', '100%0025'], ['\ud800', '%d800'],
    ['Zürich 東京', 'Zürich 東京'], ['__proto__', '__proto__'],
  ] as const
  for (const [value, written] of rows) t.equal(escapeValue(value), written)
})

t.test('two values are never written alike, and never leave their quotes', async () => {
  const values = fc.string({ unit: 'binary', maxLength: 8 })
  fc.assert(fc.property(values, values, (a, b) => (a === b) === (escapeValue(a) === escapeValue(b))), { numRuns: 2_000 })
  fc.assert(fc.property(values, (a) => !/["\\\n]/.test(escapeValue(a)) && Buffer.from(escapeValue(a)).toString() === escapeValue(a)), {
    numRuns: 2_000,
  })
})

t.test('beyond the limit of cells one cell takes the rest', async (t) => {
  const told: string[] = []
  const counter = new Counter<['a', 'b']>({ row, maxCells: 2, overflowed: (label) => told.push(label), counted: null })
  counter.add(1, 'x', '1')
  counter.add(1, 'x', '2')
  counter.add(1, 'x', '3')
  counter.add(1, 'y', '1')
  counter.add(1, 'x', '1')
  t.match(counter.read(), [{ value: 2 }, { value: 1 }, { value: 2, labels: { a: 'other', b: 'other' } }])
  t.equal(counter.read().length, 3)
  t.strictSame(told, ['b', 'a'])
})

t.test('label sets that come by turns and differ in one value are counted apart, also beyond the limit', async (t) => {
  const told: string[] = []
  const counter = new Counter<['a', 'b']>({ row, maxCells: 3, overflowed: (label) => told.push(label), counted: null })
  for (const [a, b] of [['x', '1'], ['x', '2'], ['x', '2'], ['y', '2'], ['x', '2'], ['z', '2'], ['z', '2'], ['x', '1']] as const) {
    counter.add(1, a, b)
  }
  t.strictSame(counter.read().map(({ labels, value }) => ({ ...labels, value })), [
    { a: 'x', b: '1', value: 2 }, { a: 'x', b: '2', value: 3 }, { a: 'y', b: '2', value: 1 }, { a: 'other', b: 'other', value: 2 },
  ])
  t.strictSame(told, ['a', 'a'])
})

t.test('however many label sets come by turns, each is counted for itself', async () => {
  const sets = fc.tuple(fc.constantFrom('x', 'y', 'z'), fc.constantFrom('1', '2', '3'))
  fc.assert(fc.property(fc.array(sets, { maxLength: 60 }), (given) => {
    const counter = new Counter<['a', 'b']>({ row, maxCells: 9, overflowed: nothing, counted: null })
    const expected = new Map<string, number>()
    for (const [a, b] of given) {
      counter.add(1, a, b)
      expected.set(a + b, (expected.get(a + b) ?? 0) + 1)
    }
    const cells = counter.read().map(({ labels, value }) => [`${labels.a}${labels.b}`, value])
    return JSON.stringify(cells) === JSON.stringify([...expected])
  }), { numRuns: 200 })
})

t.test('a gauge has what its sources report now, and nothing that they reported before', async (t) => {
  const gauge = new Gauge<['a', 'b']>({ row, maxCells: 10, overflowed: nothing, counted: null })
  let labels = { a: 'x', b: 'y' }
  gauge.follow((set) => set(1, labels))
  t.match(gauge.read(), [{ labels }])
  labels = { a: 'x', b: 'z' }
  t.strictSame(gauge.read().map((cell) => cell.labels), [labels])
})

t.test('what a gauge held before it was cleared is gone', async (t) => {
  const gauge = new Gauge<['a', 'b']>({ row, maxCells: 10, overflowed: nothing, counted: null })
  gauge.move(1, 'x', 'y')
  gauge.move(1, 'x', 'y')
  gauge.follow(nothing)()
  t.strictSame(gauge.read(), [])
  gauge.move(1, 'x', 'y')
  t.match(gauge.read(), [{ value: 1 }])
})

t.test('a label set that is called other anyway is the overflow cell, not its twin', async (t) => {
  const counter = new Counter<['a', 'b']>({ row, maxCells: 1, overflowed: nothing, counted: null })
  counter.add(1, 'other', 'other')
  counter.add(1, 'x', 'y')
  t.match(counter.read(), [{ value: 2 }])
  t.equal(counter.read().length, 1)
})

t.test('invented models and groups: no series, no lost token', async (t) => {
  const meters = newMeters({ maxModels: 5, maxCells: 20 })
  for (let n = 0; n < 3_000; n += 1) {
    const usage = { ...noTokens, input: 1, output: 2 }
    meters.recorder.settled(settledRequest({ model: `model-${n}`, auth: { group: groupOf(`group-${n}`) }, usage: { tokens: usage } }))
    meters.recorder.authFailed('messages', `reason-${n}`)
  }
  const samples = samplesOf(await renderText(meters.store.families, plainText))
  t.equal(sumOf(samples, 'llm_gateway_requests_total'), 3_000)
  t.equal(sumOf(samples, 'llm_gateway_tokens_total'), 9_000)
  t.equal(sumOf(samples, 'llm_gateway_auth_failures_total'), 3_000)
  t.ok(samples.size < 600)
  t.equal(samples.get('llm_gateway_series'), samples.size)
  t.equal(samples.get('llm_gateway_label_overflow_total{label="model"}'), 2_995)
  t.ok(Number(samples.get('llm_gateway_label_overflow_total{label="group"}')) > 5_000)
  t.equal(samples.get('llm_gateway_label_overflow_total{label="reason"}'), 2_980)
})

t.test('the smallest limit still counts its own overflow', async (t) => {
  const meters = newMeters({ maxCells: 1 })
  for (const reason of ['a', 'b', 'c']) meters.recorder.authFailed('messages', reason)
  for (const keyword of ['a', 'b', 'c']) meters.recorder.validationFailed('messages', keyword)
  t.match(await valuesOf(meters), {
    'llm_gateway_auth_failures_total{protocol="messages",reason="a"}': 1,
    'llm_gateway_auth_failures_total{protocol="other",reason="other"}': 2,
    'llm_gateway_label_overflow_total{label="reason"}': 2,
    'llm_gateway_label_overflow_total{label="keyword"}': 2,
  })
})
