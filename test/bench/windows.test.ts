import t from 'tap'
import { cpuUs, level, perSecond, pooled, quartiles, ratio, twinSpread, typical, type Results, type Window } from './windows.js'

function window (requests: number, cpu: number): Window {
  return { load: { requests, elapsedMs: 100, latenciesMs: [], firstByteMs: [], bodyReads: [] }, cpuUs: cpu, markCompacts: 0 }
}

function block (requests: number, ...costs: number[]): Window[] {
  return costs.map(cpu => window(requests, cpu))
}

/** Three blocks of four rounds: a slow machine in the second one, and a stall of one target in the last window. */
const results: Results = new Map([
  ['e', [...block(10, 100, 100, 100, 100), ...block(10, 300, 300, 300, 300), ...block(10, 100, 100, 100, 100)]],
  ['e2', [...block(10, 110, 90, 110, 90), ...block(10, 300, 300, 300, 300), ...block(10, 104, 100, 100, 100)]],
  ['chain', [...block(20, 240, 240, 240, 240), ...block(20, 720, 720, 720, 720), ...block(20, 240, 240, 240, 2400)]],
])

t.test('a level is the median over blocks, each block weighed by its requests', async t => {
  t.equal(level(results, cpuUs, 'e'), 10)
  t.equal(level(results, perSecond, 'chain'), 200)
  t.equal(level(new Map([['a', [window(10, 100), window(30, 900)]]]), cpuUs, 'a'), 25)
  t.equal(pooled(results, cpuUs, 'e'), 2_000 / 120)
  t.equal(typical(results, cpuUs, 'chain'), 12)
})

t.test('a ratio is taken within each block, so that a slow machine and a single stall leave no trace', async t => {
  t.equal(ratio(results, cpuUs, ['chain'], ['e']), 1.2)
  t.equal(ratio(results, perSecond, ['chain'], ['e', 'e2']), 2)
  const [lower, upper] = quartiles(results, cpuUs, ['chain'], ['e'])
  t.equal(lower, 1.2)
  t.ok(upper > 2)
})

t.test('twins lie as far apart as their blocks do, and nothing was measured of a target without windows', async t => {
  t.equal(twinSpread(results, cpuUs, 'e', 'e2'), 0)
  t.ok(twinSpread(results, cpuUs, 'e', 'chain') > 0.19)
  t.ok(Number.isNaN(level(results, cpuUs, 'absent')))
})
