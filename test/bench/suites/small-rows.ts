/** What small requests tell: throughput, cost, refusals, latency. */
import type { Row } from '../report.js'
import { spread } from '../stats.js'
import { cpuUs, p99Ms, perSecond, quartiles, ratio, twinSpread, typical, type Reading, type Results } from '../windows.js'

const d = ['d', 'd2']
const e = ['e', 'e2']

type Found = Required<Pick<Row, 'value' | 'aaSpread' | 'quartiles'>>

function against (results: Results, read: Reading, name: string, [first = '', second = '']: readonly string[]): Found {
  return {
    value: ratio(results, read, [name], [first, second]),
    aaSpread: twinSpread(results, read, first, second),
    quartiles: quartiles(results, read, [name], [first, second]),
  }
}

function beyond ({ value, aaSpread, quartiles: [lower, upper] }: Found): Found {
  return { value: value - 1, aaSpread, quartiles: [lower - 1, upper - 1] }
}

/** The p99 of the typical window: in that of all requests the machine's own pauses, of 100 ms and more, decided who was slower. */
function latencyRow (clocked: Results, rate: number): Row {
  return {
    name: 'chain_vs_d_p99',
    measure: 'p99 at half of d\'s capacity, over d',
    value: typical(clocked, p99Ms, 'chain') / typical(clocked, p99Ms, ...d),
    reach: { atMost: 1 },
    aaSpread: spread(typical(clocked, p99Ms, 'd'), typical(clocked, p99Ms, 'd2')),
    note: `${Math.round(rate)} requests/s`,
  }
}

export function smallRows (steady: Results, clocked: Results, rate: number): Row[] {
  return [
    {
      name: 'chain_vs_e_rps',
      measure: 'requests/s, whole chain over raw-Buffer reply.from',
      reach: { atLeast: 0.93 },
      ...against(steady, perSecond, 'chain', e),
    },
    {
      name: 'chain_vs_d_rps',
      measure: 'requests/s, whole chain over bare http-proxy',
      reach: { atLeast: 1.6 },
      ...against(steady, perSecond, 'chain', d),
    },
    {
      name: 'dropin_vs_d_rps',
      measure: 'requests/s, dropped into an http-proxy mount over the bare mount',
      reach: { atLeast: 1.35 },
      ...against(steady, perSecond, 'dropin', d),
    },
    {
      name: 'pool_vs_single_rps',
      measure: 'requests/s, a pool of three over a single upstream',
      reach: { atLeast: 0.97 },
      ...against(steady, perSecond, 'pool', ['chain', 'chain']),
      aaSpread: twinSpread(steady, perSecond, 'e', 'e2'),
    },
    {
      name: 'chain_over_e_cpu',
      measure: 'CPU per request beyond e, as a share of e',
      reach: { atMost: 0.08 },
      ...beyond(against(steady, cpuUs, 'chain', e)),
    },
    latencyRow(clocked, rate),
    {
      name: 'reject_vs_d_cpu',
      measure: 'CPU of a refused request (401), over d\'s of a passed one',
      reach: { atMost: 0.25 },
      ...against(steady, cpuUs, 'chain 401', d),
    },
  ]
}
