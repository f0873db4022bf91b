/**
 * Image replies of 10 MB: cost at 8 callers, and the most memory held at 64.
 *
 * Under them V8 has two regimes, and every Node gateway flips between them for seconds at a time: the 64 KB reads die in
 * scavenges, or their external memory calls for a mark-compact every few replies, at half as much processor time again.
 * Windows of one regime are compared with windows of the same; the regime that is worse for the chain counts.
 */
import { closed, interleave, lane, type Lane } from '../rounds.js'
import type { Detail, Findings } from '../report.js'
import type { Session } from '../session.js'
import { median } from '../stats.js'
import { verifyLane } from '../verify.js'
import { cpuUs, level, perSecond, type Results, type Window } from '../windows.js'

const model = 'bench-image-10'
const e = ['e', 'e2']

async function cost (session: Session): Promise<{ lanes: Lane[], results: Results }> {
  const work = session.work(model)
  const chain = await session.start('chain')
  const ours = lane(chain, work, 'as-upstream')
  const lanes = [
    lane(await session.start('e'), work, 'as-caller'),
    ours,
    ...session.mode === 'full' ? await beside(session) : [],
    lane(await session.start('e2', 'e'), work, 'as-caller'),
  ]
  const results = await interleave(session, lanes, closed(8), session.pick({
    quick: { rounds: 10, windowMs: 220, warmMs: 400, rampMs: 0 },
    full: { rounds: 36, windowMs: 300, warmMs: 1500, rampMs: 0 },
  }))
  await verifyLane(chain, work, ours)
  await session.stop()
  return { lanes, results }
}

/** Worth knowing, but in no ratio. */
async function beside (session: Session): Promise<Lane[]> {
  const work = session.work(model)
  const nginx = await session.nginx()
  return [
    lane(await session.start('dropin'), work, 'as-upstream'),
    ...[await session.start('d'), ...nginx].map(target => lane(target, work, 'as-caller')),
  ]
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
    await interleave(session, [each], closed(64), { rounds: 0, windowMs: 0, warmMs: session.pick({ quick: 600, full: 2_500 }) })
    if (server === 'chain') await verifyLane(target, work, each)
    found.get(server)?.push((await target.usage()).peakRssBytes / 2 ** 20)
    await session.stop()
  }
  return found
}

type Regime = 'scavenges' | 'mark-compacts'

const regimes: readonly Regime[] = ['scavenges', 'mark-compacts']
const leastWindows = 3

function inRegime (regime: Regime) {
  return ({ markCompacts }: Window): boolean => regime === 'scavenges' ? markCompacts === 0 : markCompacts > 1
}

/** Median cost in one regime, NaN where there are too few windows of it. */
function costIn (results: Results, regime: Regime, ...names: string[]): number {
  const windows = names.flatMap(name => results.get(name) ?? []).filter(inRegime(regime))
  return windows.length < leastWindows ? NaN : median(windows.map(window => cpuUs([window])))
}

interface Compared {
  readonly value: number
  readonly aaSpread: number
  readonly note: string
}

function compare (results: Results): Compared {
  const found = regimes.map(regime => ({
    regime,
    value: costIn(results, regime, 'chain') / costIn(results, regime, ...e),
    aaSpread: Math.abs(costIn(results, regime, 'e2') / costIn(results, regime, 'e') - 1),
  })).filter(({ value }) => Number.isFinite(value))
  const [worst] = found.sort((a, b) => b.value - a.value)
  return {
    value: worst?.value ?? NaN,
    aaSpread: worst?.aaSpread ?? NaN,
    note: found.map(({ regime, value, aaSpread }) => `${regime} ${value.toFixed(2)}, A/A ${(aaSpread * 100).toFixed(0)} %`).join('; '),
  }
}

/** Share of a target's windows that had whole-heap collections. */
function markShare (results: Results, name: string): number {
  const windows = results.get(name) ?? []
  return windows.filter(inRegime('mark-compacts')).length / windows.length
}

export async function large (session: Session): Promise<Findings> {
  const { lanes, results } = await cost(session)
  const held = await peaks(session)
  const ofE = held.get('e') ?? []
  const peakOfE = median(ofE)
  const peakOfChain = median(held.get('chain') ?? [])
  const details: Detail[] = lanes.map(({ name }) => ({
    suite: 'large',
    target: name,
    'CPU ms': level(results, cpuUs, name) / 1000,
    'in scavenges': costIn(results, 'scavenges', name) / 1000,
    'in mark-compacts': costIn(results, 'mark-compacts', name) / 1000,
    'share of those': markShare(results, name),
    'replies/s': level(results, perSecond, name),
    'peak MB at 64': name === 'e' ? peakOfE : name === 'chain' ? peakOfChain : '',
  }))
  return {
    rows: [{
      name: 'large_vs_e_cpu',
      measure: 'CPU of a 10 MB reply, over e',
      reach: { atMost: 1.1 },
      ...compare(results),
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
