/**
 * Image replies of 10 MB: cost at 8 callers, and the most memory held at 64.
 *
 * Under them V8 has two regimes: the 64 KB reads die in scavenges, or their external memory calls for a mark-compact every
 * few replies, at half as much processor time again. Every Node gateway flips between both for seconds at a time, and more
 * often than not is in the second one after a pause. So the cost is taken twice, each time as the mean over whatever regimes
 * come: in short windows with equal pauses, and, in the full mode, in runs without pause. The comparison that is worse for
 * the chain counts. Within one regime alone the difference would be smaller, but nobody can choose his regime.
 */
import { closed, generations, inTurn, interleave, joined, lane, type Lane, type Scene } from '../rounds.js'
import type { Detail, Findings, Row } from '../report.js'
import type { Session } from '../session.js'
import { median, spread } from '../stats.js'
import { verifyTarget } from '../verify.js'
import { cpuUs, level, perSecond, pooled, quartiles, type Results } from '../windows.js'
import { peaks } from './peaks.js'

const model = 'bench-image-10'
const e = ['e', 'e2']
const drive = closed(8)

async function scene (session: Session, names: readonly string[]): Promise<Scene> {
  const work = session.work(model)
  const lanes: Lane[] = []
  const checks: Array<() => Promise<void>> = []
  for (const name of names) {
    const target = await session.start(name, name.replace('2', ''), { nodeOptions: [] })
    const isOurs = name === 'chain' || name === 'dropin'
    lanes.push(lane(target, work, isOurs ? 'as-upstream' : 'as-caller'))
    if (isOurs) checks.push(async () => await verifyTarget(target, work, lanes))
  }
  return { lanes, verify: async () => { for (const check of checks) await check() } }
}

/** Short windows by turns: each target has paused before each. */
async function withPauses (session: Session): Promise<Results> {
  const names = ['e', 'chain', 'e2', 'dropin']
  return await generations(session, session.pick({ quick: 1, full: 2 }), async () => await scene(session, names), drive, session.pick({
    quick: { rounds: 4, windowMs: 200, warmMs: 125 },
    full: { rounds: 12, windowMs: 200, warmMs: 125 },
  }))
}

/** Each process alone and without a pause, by turns with the others' processes. */
async function withoutPause (session: Session): Promise<Results> {
  const found: Results[] = []
  for (let generation = 0; generation < session.pick({ quick: 0, full: 2 }); generation++) {
    for (const name of inTurn(generation, ['e', 'chain', 'e2'])) {
      const { lanes, verify } = await scene(session, [name])
      found.push(await interleave(session, lanes, drive, { rounds: 16, windowMs: 200, warmMs: 250 }))
      await verify()
      await session.stop()
    }
  }
  return joined(found)
}

/** Share of a target's windows that had several collections of the whole heap. */
function markShare (results: Results, name: string): number {
  const windows = results.get(name) ?? []
  return windows.filter(({ markCompacts }) => markCompacts > 1).length / windows.length
}

function row (paused: Results, steady: Results): Row {
  const found = [
    {
      how: 'with pauses',
      value: pooled(paused, cpuUs, 'chain') / pooled(paused, cpuUs, ...e),
      twins: spread(pooled(paused, cpuUs, 'e'), pooled(paused, cpuUs, 'e2')),
    },
    {
      how: 'without',
      value: pooled(steady, cpuUs, 'chain') / pooled(steady, cpuUs, ...e),
      twins: spread(pooled(steady, cpuUs, 'e'), pooled(steady, cpuUs, 'e2')),
    },
  ].filter(({ value }) => Number.isFinite(value))
  return {
    name: 'large_vs_e_cpu',
    measure: 'CPU of a 10 MB reply, over e',
    value: Math.max(...found.map(({ value }) => value)),
    quartiles: quartiles(paused, cpuUs, ['chain'], e),
    reach: { atMost: 1.1 },
    aaSpread: Math.max(...found.map(({ twins }) => twins)),
    note: found.map(({ how, value, twins }) => `${how} ${value.toFixed(2)}, A/A ${(twins * 100).toFixed(1)} %`).join('; '),
  }
}

export async function large (session: Session): Promise<Findings> {
  const paused = await withPauses(session)
  const steady = await withoutPause(session)
  const held = await peaks(session)
  const details: Detail[] = [...paused.keys()].map(name => ({
    suite: 'large',
    target: name,
    'CPU ms with pauses': pooled(paused, cpuUs, name) / 1000,
    'replies/s': level(paused, perSecond, name),
    'mark-compacts in': markShare(paused, name),
    'CPU ms without': pooled(steady, cpuUs, name) / 1000,
    'mark-compacts then in': markShare(steady, name),
    'peak MB at 64': median(held.values.get(name) ?? []),
  }))
  return { rows: [row(paused, steady), held.row], details }
}
