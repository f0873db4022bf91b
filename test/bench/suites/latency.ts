/** Latency at half of what the bare http-proxy can do, requests starting by the clock. */
import { closed, interleave, lane, open, p50Ms, p99Ms, perSecond } from '../rounds.js'
import { pairSpread, type Findings } from '../report.js'
import type { Session } from '../session.js'

export async function latency (session: Session): Promise<Findings> {
  const work = session.work('bench-small')
  const lanes = [
    lane(session.direct(), work, 'as-caller'),
    lane(await session.start('d'), work, 'as-caller'),
    lane(await session.start('chain'), work, 'as-upstream'),
    ...session.mode === 'full' ? [lane(await session.start('e'), work, 'as-caller')] : [],
    lane(await session.start('d2', 'd'), work, 'as-caller'),
  ]
  const capacityPlan = session.pick({
    quick: { rounds: 2, windowMs: 400, warmMs: 800 },
    full: { rounds: 4, windowMs: 1000, warmMs: 2000 },
  })
  const capacity = perSecond(await interleave(session, lanes, closed(64), capacityPlan), 'd', 'd2')
  const plan = session.pick({
    quick: { rounds: 3, windowMs: 800, warmMs: 200 },
    full: { rounds: 12, windowMs: 2000, warmMs: 1000 },
  })
  const results = await interleave(session, lanes, open(capacity / 2), plan)
  await session.stop()
  const tail = (...names: string[]): number => p99Ms(results, ...names)
  return {
    rows: [{
      name: 'chain_vs_d_p99',
      measure: 'p99 at half of d\'s capacity, over d',
      value: tail('chain') / tail('d', 'd2'),
      reach: { atMost: 1 },
      aaSpread: pairSpread(tail, 'd', 'd2'),
      note: `${Math.round(capacity / 2)} requests/s`,
    }],
    details: lanes.map(({ name }) => ({ suite: 'latency', target: name, 'p50 ms': p50Ms(results, name), 'p99 ms': tail(name) })),
  }
}
