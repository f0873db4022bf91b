/** A 1 KB chat request and a 700-byte reply, 64 callers: throughput and cost of every target. */
import { closed, generations, lane, type Lane, type Scene } from '../rounds.js'
import type { Detail, Findings, Row } from '../report.js'
import type { Session } from '../session.js'
import { verifyLane } from '../verify.js'
import { cpuUs, level, p50Ms, p99Ms, perSecond, quartiles, ratio, twinSpread, type Reading, type Results } from '../windows.js'

const callers = 64
const d = ['d', 'd2']
const e = ['e', 'e2']

async function scene (session: Session): Promise<Scene> {
  const work = session.work('bench-small')
  const bare = [await session.start('d'), await session.start('e')]
  const ours = [await session.start('chain'), await session.start('dropin')]
  const twins = [await session.start('e2', 'e'), await session.start('d2', 'd')]
  const floors = session.mode === 'full' ? [await session.start('c2'), ...await session.nginx()] : []
  const ourLanes = ours.map(target => lane(target, work, 'as-upstream'))
  const lanes: Lane[] = [
    ...bare.map(target => lane(target, work, 'as-caller')),
    ...ourLanes,
    ...twins.map(target => lane(target, work, 'as-caller')),
    ...floors.map(target => lane(target, work, 'as-caller')),
    ...session.others().map(target => lane(target, work, 'unknown')),
  ]
  return {
    lanes,
    verify: async () => { for (const [at, target] of ours.entries()) await verifyLane(target, work, ourLanes[at]) },
  }
}

export async function small (session: Session): Promise<Findings> {
  const results = await generations(session, session.pick({ quick: 2, full: 6 }), () => scene(session), closed(callers), session.pick({
    quick: { rounds: 8, windowMs: 140, warmMs: 1500, rampMs: 20 },
    full: { rounds: 12, windowMs: 200, warmMs: 2500 },
  }))
  return { rows: rows(results), details: details(results) }
}

function rows (results: Results): Row[] {
  const against = (read: Reading, name: string, below: readonly string[]): Pick<Row, 'value' | 'aaSpread' | 'quartiles'> => ({
    value: ratio(results, read, [name], below),
    aaSpread: twinSpread(results, read, below[0] ?? '', below[1] ?? ''),
    quartiles: quartiles(results, read, [name], below),
  })
  const cpu = against(cpuUs, 'chain', e)
  return [
    { name: 'chain_vs_e_rps', measure: 'requests/s, whole chain over raw-Buffer reply.from', reach: { atLeast: 0.95 }, ...against(perSecond, 'chain', e) },
    { name: 'chain_vs_d_rps', measure: 'requests/s, whole chain over bare http-proxy', reach: { atLeast: 1.6 }, ...against(perSecond, 'chain', d) },
    { name: 'dropin_vs_d_rps', measure: 'requests/s, dropped into an http-proxy mount over the bare mount', reach: { atLeast: 1.2 }, ...against(perSecond, 'dropin', d) },
    {
      name: 'chain_over_e_cpu',
      measure: 'CPU per request beyond e, as a share of e',
      reach: { atMost: 0.08 },
      ...cpu,
      value: cpu.value - 1,
      ...cpu.quartiles === undefined ? {} : { quartiles: [cpu.quartiles[0] - 1, cpu.quartiles[1] - 1] },
    },
  ]
}

function details (results: Results): Detail[] {
  return [...results.keys()].map(name => ({
    suite: 'small',
    target: name,
    'CPU us': level(results, cpuUs, name),
    'CPU vs e': ratio(results, cpuUs, [name], e),
    'CPU vs d': ratio(results, cpuUs, [name], d),
    'req/s': level(results, perSecond, name),
    'req/s vs d': ratio(results, perSecond, [name], d),
    'p50 ms': level(results, p50Ms, name),
    'p99 ms': level(results, p99Ms, name),
  }))
}
