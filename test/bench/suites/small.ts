/** A 1 KB chat request and a 700-byte reply, 64 callers: throughput and cost of every target. */
import { closed, interleave, lane, type Lane } from '../rounds.js'
import type { Detail, Findings, Row } from '../report.js'
import type { Session } from '../session.js'
import { verifyLane } from '../verify.js'
import { cpuUs, level, p50Ms, p99Ms, perSecond, ratio, twinSpread, type Results } from '../windows.js'

const callers = 64
const d = ['d', 'd2']
const e = ['e', 'e2']

export async function small (session: Session): Promise<Findings> {
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
  const results = await interleave(session, lanes, closed(callers), session.pick({
    quick: { rounds: 8, windowMs: 250, warmMs: 600 },
    full: { rounds: 20, windowMs: 450, warmMs: 2500 },
  }))
  for (const [at, target] of ours.entries()) await verifyLane(target, work, ourLanes[at])
  await session.stop()
  return { rows: rows(results), details: details(lanes, results) }
}

function rows (results: Results): Row[] {
  const rate = (name: string, below: readonly string[]): number => ratio(results, perSecond, [name], below)
  const rateOfE = twinSpread(results, perSecond, 'e', 'e2')
  const rateOfD = twinSpread(results, perSecond, 'd', 'd2')
  return [
    { name: 'chain_vs_e_rps', measure: 'requests/s, whole chain over raw-Buffer reply.from', value: rate('chain', e), reach: { atLeast: 0.95 }, aaSpread: rateOfE },
    { name: 'chain_vs_d_rps', measure: 'requests/s, whole chain over bare http-proxy', value: rate('chain', d), reach: { atLeast: 1.6 }, aaSpread: rateOfD },
    { name: 'dropin_vs_d_rps', measure: 'requests/s, dropped into an http-proxy mount over the bare mount', value: rate('dropin', d), reach: { atLeast: 1.2 }, aaSpread: rateOfD },
    { name: 'chain_over_e_cpu', measure: 'CPU per request beyond e, as a share of e', value: ratio(results, cpuUs, ['chain'], e) - 1, reach: { atMost: 0.08 }, aaSpread: twinSpread(results, cpuUs, 'e', 'e2') },
  ]
}

function details (lanes: readonly Lane[], results: Results): Detail[] {
  return lanes.map(({ name }) => ({
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
