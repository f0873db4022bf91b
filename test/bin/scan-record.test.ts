import fc from 'fast-check'
import t from 'tap'
import { add, decimalText, readDecimal, zero } from '../../plugins/core/money/decimal.js'
import { leafTokens } from '../../plugins/core/call/measures.js'
import { frameHead, isFrame, writeFrame } from '../../plugins/state/ledger/frame.js'
import { bytesOf, slackBytes, type Bytes } from '../../bin/sums/json-bytes.js'
import { Money } from '../../bin/sums/money.js'
import { Scanned } from '../../bin/sums/scan-record.js'
import { amount, anyRecord } from './any-record.js'

const runs = Number(process.env['RUNS'] ?? 300)
function json (line: Buffer | string): Bytes {
  return bytesOf(Buffer.concat([Buffer.from(line), Buffer.alloc(slackBytes, '"')]))
}

t.test('what is scanned is what JSON says', async (t) => {
  const scanned = new Scanned()
  fc.assert(fc.property(anyRecord, (record) => {
    const line = Buffer.from(`before\n${writeFrame(record)}`)
    const [from, to] = [7, line.length - 1]
    t.equal(isFrame(line, from, to), true)
    scanned.read(json(line), from + frameHead)
    const { time, key, group, protocol, model, outcome, charged, cost, currency, labels, unpriced, tokens: counts, requests } = scanned
    const { cost: wantedCost = null, currency: wantedCurrency = null, costParts = {}, labels: wantedLabels = {} } = record
    const found = { time, key, group, protocol, model, outcome, charged, cost, currency, labels, unpriced, tokens: counts, requests }
    t.strictSame(found, {
      time: record.time,
      key: record.key,
      group: record.group,
      protocol: record.protocol,
      model: record.model,
      outcome: record.outcome,
      charged: record.charged,
      cost: wantedCost,
      currency: wantedCurrency,
      labels: wantedLabels,
      unpriced: Object.values(costParts).includes(null) ? 1 : 0,
      tokens: leafTokens(record),
      requests: 1,
    })
  }), { numRuns: runs })
})

t.test('numbers as nobody writes them are read, too', async (t) => {
  const scanned = new Scanned()
  // Twice: what a record has is remembered, and looked for in the next one.
  for (let i = 0; i < 2; i += 1) scanned.read(json('{"time":1.5e3,"charged":-2,"input":7,"":0}'), 0)
  t.match(scanned, { time: 1_500, charged: -2, tokens: [7, 0, 0, 0, 0, 0, 0, 0] })
})

t.test('labels of very many requests are not all remembered', async (t) => {
  const scanned = new Scanned()
  for (let i = 0; i <= 10_001; i += 1) {
    scanned.read(json(`{"labels":{"user":"u${i}"}}`), 0)
    if (scanned.labels['user'] !== `u${i}`) t.fail(String(i))
  }
})

t.test('texts whose bytes have the same hash are not taken for each other, nor what is not there for what was', async (t) => {
  const scanned = new Scanned()
  for (const model of ['u332789', 'u529192', 'u332789', 'u39068', 'u1300882']) {
    scanned.read(json(`{"model":"${model}","labels":{"a":"b"}}`), 0)
    t.match(scanned, { model, labels: { a: 'b' } })
  }
  scanned.read(json('{"time":1}'), 0)
  const { time, model, key, labels } = scanned
  t.strictSame({ time, model, key, labels }, { time: 1, model: null, key: null, labels: {} })
})

t.test('a line that was changed is no frame', async (t) => {
  const line = Buffer.from(writeFrame(JSON.parse('{"id":"a"}')))
  const end = line.length - 1
  t.ok(isFrame(line, 0, end))
  for (const broken of [
    'end', '', '12345678 ', `${'x'.repeat(8)} {}`, `${'g0000000'} {}`, `${line.toString('latin1', 0, end - 1)}`,
    line.toString('latin1', 0, end).toUpperCase(),
  ]) {
    t.notOk(isFrame(Buffer.from(broken, 'latin1'), 0, broken.length), broken)
  }
})

t.test('sums of money are exact, however many and however large', async (t) => {
  fc.assert(fc.property(fc.array(fc.oneof(amount.map((each) => each ?? '0'), fc.constantFrom('0.999999999999', '0.1', '0.000000000001')), {
    maxLength: 200,
  }), (texts) => {
    const money = new Money()
    for (const each of texts) money.add(each)
    const exact = texts.reduce((sum, each) => add(sum, readDecimal(each) ?? zero), zero)
    t.equal(decimalText(money.total), decimalText(exact))
    t.equal(decimalText(money.total), decimalText(exact), 'asked again')
  }), { numRuns: runs })
  const many = new Money()
  for (let i = 0; i < 20_000; i += 1) many.add('0.999999999999')
  many.add('none')
  many.add('0.1e2')
  t.equal(decimalText(many.total), '20009.99999998')
})
