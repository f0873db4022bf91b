/** The most memory that a fresh process holds under 64 callers of 10 MB replies. */
import type { Row } from '../report.js'
import { closed, interleave, lane } from '../rounds.js'
import type { Session } from '../session.js'
import { median, spread } from '../stats.js'
import { verifyLane } from '../verify.js'

export interface Peaks {
  /** Megabytes for each start of each server. */
  readonly values: ReadonlyMap<string, readonly number[]>
  readonly row: Row
}

export async function peaks (session: Session): Promise<Peaks> {
  const work = session.work('bench-image-10')
  const ofE: number[] = []
  const ofChain: number[] = []
  const order = ['e', 'chain', 'chain', 'e']
  for (let round = 0; round < session.pick({ quick: 4, full: 8 }); round++) {
    const server = order[round % order.length] ?? 'e'
    const target = await session.start(server, server, { nodeOptions: [] })
    const each = lane(target, work, server === 'e' ? 'as-caller' : 'as-upstream')
    await interleave(session, [each], closed(64), { rounds: 4, windowMs: session.pick({ quick: 150, full: 625 }), warmMs: 0 })
    if (server === 'chain') await verifyLane(target, work, each);
    (server === 'e' ? ofE : ofChain).push((await target.usage()).peakRssBytes / 2 ** 20)
    await session.stop()
  }
  return {
    values: new Map([['e', ofE], ['chain', ofChain]]),
    row: {
      name: 'large_extra_rss_mb',
      measure: 'peak memory beyond e at 64 callers of 10 MB, MB',
      value: median(ofChain) - median(ofE),
      reach: { atMost: 16 },
      aaSpread: halves(ofE),
      note: `e itself: ${Math.round(Math.min(...ofE))} to ${Math.round(Math.max(...ofE))}`,
    },
  }
}

/** The starts of one server split in two by turns: how far their medians lie apart. */
function halves (values: readonly number[]): number {
  const half = (parity: number): number => median(values.filter((_, at) => at % 2 === parity))
  return spread(half(0), half(1))
}
