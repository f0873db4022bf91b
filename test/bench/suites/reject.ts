/** A caller with an unknown key: what a refusal costs, against what the bare proxy spends on letting it pass. */
import { closed, generations, lane, refusedLane, type Scene } from '../rounds.js'
import type { Findings } from '../report.js'
import type { Session } from '../session.js'
import { verifyTotals } from '../verify.js'
import { cpuUs, level, perSecond, quartiles, ratio, twinSpread } from '../windows.js'

const d = ['d', 'd2']

async function scene (session: Session): Promise<Scene> {
  const work = session.work('bench-small')
  const chain = await session.start('chain')
  const refused = refusedLane(chain, work, 'chain 401')
  return {
    lanes: [lane(await session.start('d'), work, 'as-caller'), refused, lane(await session.start('d2', 'd'), work, 'as-caller')],
    verify: async () => await verifyTotals(chain, { ok: 0, inputTokens: 0, outputTokens: 0, refused: refused.answered }),
  }
}

export async function reject (session: Session): Promise<Findings> {
  const results = await generations(session, session.pick({ quick: 2, full: 5 }), () => scene(session), closed(64), session.pick({
    quick: { rounds: 4, windowMs: 150, warmMs: 1250, rampMs: 20 },
    full: { rounds: 12, windowMs: 200, warmMs: 2500 },
  }))
  return {
    rows: [{
      name: 'reject_vs_d_cpu',
      measure: 'CPU of a refused request (401), over d\'s of a passed one',
      value: ratio(results, cpuUs, ['chain 401'], d),
      quartiles: quartiles(results, cpuUs, ['chain 401'], d),
      reach: { atMost: 0.25 },
      aaSpread: twinSpread(results, cpuUs, 'd', 'd2'),
    }],
    details: [...results.keys()].map(name => ({ suite: 'reject', target: name, 'CPU us': level(results, cpuUs, name), 'req/s': level(results, perSecond, name) })),
  }
}
