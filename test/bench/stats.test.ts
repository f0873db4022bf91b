import t from 'tap'
import { maxSpread, median, quantile, spread, verdict } from './stats.js'

t.test('quantiles interpolate between the nearest ranks, in any order of the input', async t => {
  t.equal(quantile([3, 1, 2], 0), 1)
  t.equal(quantile([3, 1, 2], 1), 3)
  t.equal(median([4, 1, 3, 2]), 2.5)
  t.equal(quantile([10, 20], 0.25), 12.5)
  t.ok(Number.isNaN(median([])))
})

t.test('a verdict needs a baseline that agrees with itself', async t => {
  const cases = [
    { value: 0.96, reach: { atLeast: 0.95 }, aaSpread: 0.01, wanted: 'reached' },
    { value: 0.95, reach: { atLeast: 0.95 }, aaSpread: maxSpread, wanted: 'reached' },
    { value: 0.94, reach: { atLeast: 0.95 }, aaSpread: 0.01, wanted: 'missed' },
    { value: 1.05, reach: { atMost: 1.05 }, aaSpread: 0, wanted: 'reached' },
    { value: 1.06, reach: { atMost: 1.05 }, aaSpread: 0, wanted: 'missed' },
    { value: 9, reach: { atLeast: 0.95 }, aaSpread: 0.051, wanted: 'unresolved' },
    { value: 9, reach: { atLeast: 0.95 }, aaSpread: NaN, wanted: 'unresolved' },
    { value: NaN, reach: { atLeast: 0.95 }, aaSpread: 0, wanted: 'unresolved' },
  ]
  for (const { value, reach, aaSpread, wanted } of cases) {
    t.equal(verdict(value, reach, aaSpread), wanted, `${value} at ${JSON.stringify(reach)} with ${aaSpread}`)
  }
  t.ok(spread(100, 95) <= maxSpread + 1e-9)
  t.ok(spread(100, 106) > maxSpread)
})
