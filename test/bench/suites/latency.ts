/** Latency at half of what the bare http-proxy can do, requests starting by the clock. */
import { closed, interleave, lane, open } from '../rounds.js'
import type { Findings } from '../report.js'
import type { Session } from '../session.js'
import { verifyLane } from '../verify.js'
import { level, p50Ms, p99Ms, perSecond, ratio, twinSpread } from '../windows.js'

export async function latency (session: Session): Promise<Findings> {
  const work = session.work('bench-small')
  const chain = await session.start('chain')
  const ours = lane(chain, work, 'as-upstream')
  const bare = [lane(await session.start('d'), work, 'as-caller'), lane(await session.start('d2', 'd'), work, 'as-caller')]
  const [first = ours, second = ours] = bare
  const beside = session.mode === 'full' ? [session.direct(), await session.start('e')] : []
  const lanes = [first, ours, second, ...beside.map(target => lane(target, work, 'as-caller'))]
  const capacity = level(await interleave(session, [first, ours, second], closed(64, false), session.pick({
    quick: { rounds: 6, windowMs: 120, warmMs: 500 },
    full: { rounds: 10, windowMs: 300, warmMs: 2000 },
  })), perSecond, 'd', 'd2')
  const results = await interleave(session, lanes, open(capacity / 2), session.pick({
    quick: { rounds: 14, windowMs: 200, warmMs: 200 },
    full: { rounds: 44, windowMs: 300, warmMs: 1000 },
  }))
  await verifyLane(chain, work, ours)
  await session.stop()
  return {
    rows: [{
      name: 'chain_vs_d_p99',
      measure: 'p99 at half of d\'s capacity, over d',
      value: ratio(results, p99Ms, ['chain'], ['d', 'd2']),
      reach: { atMost: 1 },
      aaSpread: twinSpread(results, p99Ms, 'd', 'd2'),
      note: `${Math.round(capacity / 2)} requests/s`,
    }],
    details: lanes.map(({ name }) => ({ suite: 'latency', target: name, 'p50 ms': level(results, p50Ms, name), 'p99 ms': level(results, p99Ms, name) })),
  }
}
