/** Streams of 200 events, each a write of its own: cost of a stream, time to its first chunk, and reads against writes. */
import { closed, cpuUs, firstByteMs, interleave, lane, open, type Lane, type Results } from '../rounds.js'
import { pairSpread, type Findings } from '../report.js'
import type { Session } from '../session.js'
import type { NodeTarget, Target } from '../target.js'
import { verifyTotals } from '../verify.js'
import { sseEvents, type Work } from '../work.js'

interface Cast {
  /** The mock itself, and what passes the caller's credential on. */
  readonly asCaller: readonly Target[]
  readonly ours: readonly NodeTarget[]
  readonly twins: readonly Target[]
}

async function cast (session: Session): Promise<Cast> {
  const { mode } = session
  return {
    asCaller: [session.direct(), await session.start('d'), await session.start('e'), ...mode === 'full' ? await session.nginx() : []],
    ours: [await session.start('chain'), ...mode === 'full' ? [await session.start('dropin')] : []],
    twins: [await session.start('e2', 'e'), await session.start('d2', 'd')],
  }
}

function lanesOf ({ asCaller, ours, twins }: Cast, work: Work): Lane[] {
  return [
    ...asCaller.map(target => lane(target, work, 'as-caller')),
    ...ours.map(target => lane(target, work, 'as-upstream')),
    ...twins.map(target => lane(target, work, 'as-caller')),
  ]
}

/** Share of streams whose every event came in a read of its own. */
function wholeReads (results: Results, name: string, events: number): number {
  const reads = (results.get(name) ?? []).flatMap(window => window.load.bodyReads)
  return reads.filter(count => count === events).length / reads.length
}

function meanReads (results: Results, name: string): number {
  const reads = (results.get(name) ?? []).flatMap(window => window.load.bodyReads)
  return reads.reduce((sum, count) => sum + count, 0) / reads.length
}

export async function stream (session: Session): Promise<Findings> {
  const players = await cast(session)
  const events = lanesOf(players, session.work('bench-events'))
  const costs = await interleave(session, events, closed(12), session.pick({
    quick: { rounds: 3, windowMs: 500, warmMs: 600 },
    full: { rounds: 8, windowMs: 1500, warmMs: 2000 },
  }))
  const short = lanesOf(players, session.work('bench-first'))
  const firsts = await interleave(session, short, open(session.pick({ quick: 150, full: 200 })), session.pick({
    quick: { rounds: 3, windowMs: 600, warmMs: 200 },
    full: { rounds: 10, windowMs: 1500, warmMs: 500 },
  }))
  const paced = lanesOf(players, session.work('bench-paced'))
  const passes = await interleave(session, paced, closed(8), { rounds: session.pick({ quick: 1, full: 3 }), windowMs: 100, warmMs: 0, rampMs: 0 })
  for (const target of players.ours) {
    const ok = [...events, ...short, ...paced].filter(each => each.target === target).reduce((sum, each) => sum + each.answered, 0)
    const { tokens } = session.work('bench-events')
    await verifyTotals(target, { ok, inputTokens: ok * tokens.input, outputTokens: ok * tokens.output })
  }
  await session.stop()
  return findings(events, costs, firsts, passes)
}

function findings (lanes: readonly Lane[], costs: Results, firsts: Results, passes: Results): Findings {
  const cpu = (...names: string[]): number => cpuUs(costs, ...names)
  const first = (...names: string[]): number => firstByteMs(firsts, ...names)
  const added = (...names: string[]): number => first(...names) - first('direct')
  const whole = (name: string): number => wholeReads(passes, name, sseEvents)
  return {
    rows: [{
      name: 'sse_vs_e_cpu',
      measure: `CPU per stream of ${sseEvents} events, over e`,
      value: cpu('chain') / cpu('e', 'e2'),
      reach: { atMost: 1.05 },
      aaSpread: pairSpread(cpu, 'e', 'e2'),
      note: `reads = writes in ${Math.round(whole('chain') * 100)} % of paced streams, direct ${Math.round(whole('direct') * 100)} %`,
    }, {
      name: 'ttfc_vs_d',
      measure: 'added time to first chunk, over d\'s',
      value: added('chain') / added('d', 'd2'),
      reach: { atMost: 1 },
      aaSpread: pairSpread(added, 'd', 'd2'),
    }],
    details: lanes.map(({ name }) => ({
      suite: 'stream',
      target: name,
      'CPU us': cpu(name),
      'CPU vs e': cpu(name) / cpu('e', 'e2'),
      'first chunk ms': first(name),
      'added ms': added(name),
      'reads = writes': whole(name),
      'mean reads': meanReads(costs, name),
    })),
  }
}
