/** A caller with an unknown key: what a refusal costs, against what the bare proxy spends on letting it pass. */
import { closed, cpuUs, interleave, lane, perSecond, type Lane } from '../rounds.js'
import { pairSpread, type Findings } from '../report.js'
import type { Session } from '../session.js'
import { verifyTotals } from '../verify.js'
import { requestBytes } from '../work.js'

export async function reject (session: Session): Promise<Findings> {
  const work = session.work('bench-small')
  const chain = await session.start('chain')
  const refused: Lane = {
    name: 'chain 401',
    target: chain,
    exchange: { bytes: requestBytes(work, 'sk-bench-unknown-0123456789abcdef0123456789abcdef'), status: 401, reply: null },
    reaches: 'no',
    answered: 0,
  }
  const lanes = [
    lane(await session.start('d'), work, 'as-caller'),
    refused,
    lane(await session.start('d2', 'd'), work, 'as-caller'),
  ]
  const results = await interleave(session, lanes, closed(64), session.pick({
    quick: { rounds: 3, windowMs: 400, warmMs: 800 },
    full: { rounds: 10, windowMs: 1000, warmMs: 2000 },
  }))
  await verifyTotals(chain, { ok: 0, inputTokens: 0, outputTokens: 0, refused: refused.answered })
  await session.stop()
  const cpu = (...names: string[]): number => cpuUs(results, ...names)
  return {
    rows: [{
      name: 'reject_vs_d_cpu',
      measure: 'CPU of a refused request (401), over d\'s of a passed one',
      value: cpu('chain 401') / cpu('d', 'd2'),
      reach: { atMost: 0.25 },
      aaSpread: pairSpread(cpu, 'd', 'd2'),
    }],
    details: lanes.map(({ name }) => ({ suite: 'reject', target: name, 'CPU us': cpu(name), 'req/s': perSecond(results, name) })),
  }
}
