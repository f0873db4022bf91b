/** Latency at half of what the bare http-proxy can do, requests starting by the clock. */
import { closed, generations, interleave, lane, open, warmed, type Scene } from '../rounds.js'
import type { Findings } from '../report.js'
import type { Session } from '../session.js'
import { verifyLane } from '../verify.js'
import { level, p50Ms, p99Ms, perSecond, quartiles, ratio, twinSpread } from '../windows.js'

const d = ['d', 'd2']

/** Requests a second of the bare proxy with callers that sleep, as those of the open loop do. */
async function capacityOfBare (session: Session): Promise<number> {
  const work = session.work('bench-small')
  const lanes = [lane(await session.start('d'), work, 'as-caller'), lane(await session.start('d2', 'd'), work, 'as-caller')]
  const results = await interleave(session, lanes, closed(64, false), session.pick({
    quick: { rounds: 4, windowMs: 120, warmMs: 1500 },
    full: { rounds: 12, windowMs: 200, warmMs: 2500 },
  }))
  await session.stop()
  return level(results, perSecond, ...d)
}

async function scene (session: Session): Promise<Scene> {
  const work = session.work('bench-small')
  const bare = [await session.start('d'), await session.start('d2', 'd')].map(target => lane(target, work, 'as-caller'))
  const chain = await session.start('chain')
  const ours = lane(chain, work, 'as-upstream')
  const beside = session.mode === 'full' ? [session.direct(), await session.start('e')] : []
  const lanes = [...bare.slice(0, 1), ours, ...bare.slice(1), ...beside.map(target => lane(target, work, 'as-caller'))]
  await warmed(session, lanes, closed(64), session.pick({ quick: 1_250, full: 2_500 }))
  return { lanes, verify: async () => await verifyLane(chain, work, ours) }
}

export async function latency (session: Session): Promise<Findings> {
  const rate = await capacityOfBare(session) / 2
  const results = await generations(session, session.pick({ quick: 2, full: 6 }), () => scene(session), open(rate), session.pick({
    quick: { rounds: 8, windowMs: 200, warmMs: 200 },
    full: { rounds: 12, windowMs: 250, warmMs: 500 },
  }))
  return {
    rows: [{
      name: 'chain_vs_d_p99',
      measure: 'p99 at half of d\'s capacity, over d',
      value: ratio(results, p99Ms, ['chain'], d),
      quartiles: quartiles(results, p99Ms, ['chain'], d),
      reach: { atMost: 1 },
      aaSpread: twinSpread(results, p99Ms, 'd', 'd2'),
      note: `${Math.round(rate)} requests/s`,
    }],
    details: [...results.keys()].map(name => ({ suite: 'latency', target: name, 'p50 ms': level(results, p50Ms, name), 'p99 ms': level(results, p99Ms, name) })),
  }
}
