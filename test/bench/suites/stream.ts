/**
 * Streams of 200 events, each a write of its own: the cost of a stream that comes at once and of one that comes event by
 * event (in the full mode), and whether each event is passed on by itself.
 */
import { closed, inTurn, interleave, joined, lane, type Lane } from '../rounds.js'
import type { Findings } from '../report.js'
import type { Session } from '../session.js'
import { stepStreams } from '../step-streams.js'
import type { NodeTarget, Target } from '../target.js'
import { verifyTarget } from '../verify.js'
import { sseEvents } from '../work.js'
import { cpuUs, level, quartiles, ratio, twinSpread, type Results } from '../windows.js'

const e = ['e', 'e2']

interface Cast {
  readonly bare: readonly Target[]
  readonly ours: readonly NodeTarget[]
  /** Worth knowing, but in no ratio. */
  readonly beside: readonly Target[]
}

interface Measured {
  readonly burst: Results
  readonly paced: Results
  /** Share of streams that came in as many reads as the upstream made writes: the least of all generations. */
  readonly whole: ReadonlyMap<string, number>
}

async function cast (session: Session): Promise<Cast> {
  const isFull = session.mode === 'full'
  return {
    bare: [await session.start('e'), await session.start('e2', 'e')],
    ours: [await session.start('chain'), ...isFull ? [await session.start('dropin')] : []],
    beside: isFull ? [await session.start('d')] : [],
  }
}

/** A baseline first, its twin last. */
function lanesOf (session: Session, model: string, { bare, ours, beside }: Cast): Lane[] {
  const work = session.work(model)
  return [
    ...bare.slice(0, 1).map(target => lane(target, work, 'as-caller')),
    ...ours.map(target => lane(target, work, 'as-upstream')),
    ...beside.map(target => lane(target, work, 'as-caller')),
    ...bare.slice(1).map(target => lane(target, work, 'as-caller')),
  ]
}

async function generation (session: Session, at: number): Promise<Measured> {
  const targets = await cast(session)
  const atOnce = lanesOf(session, 'bench-burst', targets)
  const burst = await interleave(session, inTurn(at, atOnce), closed(12), session.pick({
    quick: { rounds: 4, windowMs: 150, warmMs: 500 },
    // A stream is 200 events long: after one second of them the chain still costs a quarter more than after five.
    full: { rounds: 8, windowMs: 200, warmMs: 4000 },
  }))
  const slowly = session.mode === 'full' ? lanesOf(session, 'bench-events', { ...targets, beside: [] }) : []
  const paced = await interleave(session, inTurn(at, slowly), closed(24), { rounds: 8, windowMs: 400, warmMs: 0 })
  const stepped = lanesOf(session, 'bench-stepped', { ...targets, beside: [session.direct()] })
  const whole = new Map<string, number>()
  for (const each of stepped) whole.set(each.name, await stepStreams(session, each, sseEvents))
  for (const target of targets.ours) await verifyTarget(target, session.work('bench-burst'), [...atOnce, ...slowly, ...stepped])
  await session.stop()
  return { burst, paced, whole }
}

/** What one process has by luck is more than what its windows differ: many processes, few windows of each. */
export async function stream (session: Session): Promise<Findings> {
  const all: Measured[] = []
  for (let at = 0; at < session.pick({ quick: 1, full: 2 }); at++) all.push(await generation(session, at))
  const least = (name: string): number => Math.min(...all.map(({ whole }) => whole.get(name) ?? NaN))
  const burst = joined(all.map(each => each.burst))
  const paced = joined(all.map(each => each.paced))
  const atOnce = ratio(burst, cpuUs, ['chain'], e)
  const slowly = ratio(paced, cpuUs, ['chain'], e)
  const worse = slowly > atOnce ? paced : burst
  const twins = [burst, paced].map(each => twinSpread(each, cpuUs, 'e', 'e2')).filter(Number.isFinite)
  return {
    rows: [{
      name: 'sse_vs_e_cpu',
      measure: `CPU per stream of ${sseEvents} events, over e; the worse of at once and one a millisecond`,
      value: worse === paced ? slowly : atOnce,
      quartiles: quartiles(worse, cpuUs, ['chain'], e),
      reach: { atMost: 1.05 },
      aaSpread: Math.max(...twins),
      note: `at once ${atOnce.toFixed(2)}, paced ${Number.isFinite(slowly) ? slowly.toFixed(2) : 'not in the quick mode'}; reads = ` +
        `writes in ${Math.round(least('chain') * 100)} % of streams`,
    }],
    details: [...burst.keys(), 'direct'].map(name => ({
      suite: 'stream',
      target: name,
      'CPU us at once': level(burst, cpuUs, name),
      'CPU us paced': level(paced, cpuUs, name),
      'reads = writes': least(name),
    })),
  }
}
