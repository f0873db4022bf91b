/** Image replies of 10 MB: cost at 8 callers, and the most memory held at 64. */
import { closed, cpuUs, interleave, lane, perSecond, type Lane, type Results } from '../rounds.js'
import { pairSpread, type Detail, type Findings } from '../report.js'
import type { Session } from '../session.js'
import { median } from '../stats.js'
import { verifyTotals } from '../verify.js'

const model = 'bench-image-10'

async function cost (session: Session): Promise<{ lanes: Lane[], results: Results }> {
  const work = session.work(model)
  const chain = await session.start('chain')
  const lanes = [
    lane(await session.start('d'), work, 'as-caller'),
    lane(await session.start('e'), work, 'as-caller'),
    lane(chain, work, 'as-upstream'),
    ...session.mode === 'full' ? await beside(session) : [],
    lane(await session.start('e2', 'e'), work, 'as-caller'),
  ]
  const results = await interleave(session, lanes, closed(8), session.pick({
    quick: { rounds: 3, windowMs: 600, warmMs: 600 },
    full: { rounds: 10, windowMs: 1200, warmMs: 1500 },
  }))
  const ok = lanes[2]?.answered ?? 0
  await verifyTotals(chain, { ok, inputTokens: ok * work.tokens.input, outputTokens: ok * work.tokens.output })
  await session.stop()
  return { lanes, results }
}

/** Worth knowing, but in no ratio. */
async function beside (session: Session): Promise<Lane[]> {
  const work = session.work(model)
  const nginx = await session.nginx()
  return [lane(await session.start('dropin'), work, 'as-upstream'), ...nginx.map(target => lane(target, work, 'as-caller'))]
}

/** Peak memory in MB of a fresh process, for each start of each server. */
async function peaks (session: Session): Promise<Map<string, number[]>> {
  const work = session.work(model)
  const found = new Map<string, number[]>([['e', []], ['chain', []]])
  const order = ['e', 'chain', 'chain', 'e']
  for (let round = 0; round < session.pick({ quick: 4, full: 12 }); round++) {
    const server = order[round % order.length] ?? 'e'
    const target = await session.start(server)
    const each = lane(target, work, server === 'e' ? 'as-caller' : 'as-upstream')
    await interleave(session, [each], closed(64), { rounds: 1, windowMs: session.pick({ quick: 700, full: 3000 }), warmMs: 500 })
    found.get(server)?.push((await target.usage()).peakRssBytes / 2 ** 20)
    await session.stop()
  }
  return found
}

export async function large (session: Session): Promise<Findings> {
  const { lanes, results } = await cost(session)
  const held = await peaks(session)
  const cpu = (...names: string[]): number => cpuUs(results, ...names)
  const ofE = held.get('e') ?? []
  const peakOfE = median(ofE)
  const peakOfChain = median(held.get('chain') ?? [])
  const details: Detail[] = lanes.map(({ name }) => ({
    suite: 'large',
    target: name,
    'CPU ms': cpu(name) / 1000,
    'CPU vs e': cpu(name) / cpu('e', 'e2'),
    'replies/s': perSecond(results, name),
    'peak MB at 64': name === 'e' ? peakOfE : name === 'chain' ? peakOfChain : '',
  }))
  return {
    rows: [{
      name: 'large_vs_e_cpu',
      measure: 'CPU of a 10 MB reply, over e',
      value: cpu('chain') / cpu('e', 'e2'),
      reach: { atMost: 1.1 },
      aaSpread: pairSpread(cpu, 'e', 'e2'),
    }, {
      name: 'large_extra_rss_mb',
      measure: 'peak memory beyond e at 64 callers of 10 MB, MB',
      value: peakOfChain - peakOfE,
      reach: { atMost: 16 },
      aaSpread: halves(ofE),
      note: `e itself: ${Math.round(Math.min(...ofE))} to ${Math.round(Math.max(...ofE))}`,
    }],
    details,
  }
}

/** The starts of one server split in two by turns: how far their medians lie apart. */
function halves (values: readonly number[]): number {
  const half = (parity: number): number => median(values.filter((_, at) => at % 2 === parity))
  return Math.abs(half(1) / half(0) - 1)
}
