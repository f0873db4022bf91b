/** A caller with an unknown key: what a refusal costs, against what the bare proxy spends on letting it pass. */
import { closed, interleave, lane, refusedLane } from '../rounds.js'
import type { Findings } from '../report.js'
import type { Session } from '../session.js'
import { verifyTotals } from '../verify.js'
import { cpuUs, level, perSecond, ratio, twinSpread } from '../windows.js'

export async function reject (session: Session): Promise<Findings> {
  const work = session.work('bench-small')
  const chain = await session.start('chain')
  const refused = refusedLane(chain, work, 'chain 401')
  const lanes = [
    lane(await session.start('d'), work, 'as-caller'),
    refused,
    lane(await session.start('d2', 'd'), work, 'as-caller'),
  ]
  const results = await interleave(session, lanes, closed(64), session.pick({
    quick: { rounds: 8, windowMs: 200, warmMs: 500 },
    full: { rounds: 20, windowMs: 500, warmMs: 2000 },
  }))
  await verifyTotals(chain, { ok: 0, inputTokens: 0, outputTokens: 0, refused: refused.answered })
  await session.stop()
  return {
    rows: [{
      name: 'reject_vs_d_cpu',
      measure: 'CPU of a refused request (401), over d\'s of a passed one',
      value: ratio(results, cpuUs, ['chain 401'], ['d', 'd2']),
      reach: { atMost: 0.25 },
      aaSpread: twinSpread(results, cpuUs, 'd', 'd2'),
    }],
    details: lanes.map(({ name }) => ({ suite: 'reject', target: name, 'CPU us': level(results, cpuUs, name), 'req/s': level(results, perSecond, name) })),
  }
}
