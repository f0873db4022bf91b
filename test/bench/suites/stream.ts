/**
 * Streams of 200 events, each a write of its own: the cost of a stream that comes at once and of one that comes event by
 * event, the time to the first chunk, and whether each event is passed on by itself.
 */
import { closed, interleave, lane, open, type Lane } from '../rounds.js'
import type { Findings, Row } from '../report.js'
import type { Session } from '../session.js'
import { stepStreams } from '../step-streams.js'
import type { NodeTarget, Target } from '../target.js'
import { verifyTotals } from '../verify.js'
import { sseEvents } from '../work.js'
import { cpuUs, firstByteMs, level, overBlocks, ratio, twinSpread, type Block, type Results } from '../windows.js'

interface Cast {
  readonly d: readonly Target[]
  readonly e: readonly Target[]
  readonly ours: readonly NodeTarget[]
  readonly direct: Target
}

interface Measured {
  readonly burst: Results
  readonly paced: Results
  readonly firsts: Results
  /** Share of streams that came in as many reads as the upstream made writes. */
  readonly whole: ReadonlyMap<string, number>
}

async function cast (session: Session): Promise<Cast> {
  return {
    d: [await session.start('d'), await session.start('d2', 'd')],
    e: [await session.start('e'), await session.start('e2', 'e')],
    ours: [await session.start('chain'), ...session.mode === 'full' ? [await session.start('dropin')] : []],
    direct: session.direct(),
  }
}

/** A baseline first, its twin last. */
function around (session: Session, model: string, [first, last]: readonly Target[], ours: readonly Target[], others: readonly Target[] = []): Lane[] {
  const work = session.work(model)
  const bare = (target: Target | undefined): Lane[] => target === undefined ? [] : [lane(target, work, 'as-caller')]
  return [...bare(first), ...ours.map(target => lane(target, work, 'as-upstream')), ...others.flatMap(bare), ...bare(last)]
}

export async function stream (session: Session): Promise<Findings> {
  const { d, e, ours, direct } = await cast(session)
  const atOnce = around(session, 'bench-burst', e, ours, session.mode === 'full' ? d : [])
  const burst = await interleave(session, atOnce, closed(12), session.pick({
    quick: { rounds: 8, windowMs: 200, warmMs: 400 },
    full: { rounds: 16, windowMs: 500, warmMs: 1500 },
  }))
  const slowly = around(session, 'bench-events', e, ours)
  const paced = await interleave(session, slowly, closed(24), session.pick({
    quick: { rounds: 4, windowMs: 200, warmMs: 200, rampMs: 0 },
    full: { rounds: 14, windowMs: 500, warmMs: 600, rampMs: 0 },
  }))
  const short = around(session, 'bench-first', d, ours, [direct, ...session.mode === 'full' ? e : []])
  const firsts = await interleave(session, short, open(150), session.pick({
    quick: { rounds: 6, windowMs: 250, warmMs: 200, rampMs: 0 },
    full: { rounds: 16, windowMs: 500, warmMs: 500, rampMs: 0 },
  }))
  const stepped = around(session, 'bench-stepped', [direct], ours, e)
  const whole = new Map<string, number>()
  for (const each of stepped) whole.set(each.name, await stepStreams(session, each, sseEvents))
  for (const target of ours) {
    const ok = [...atOnce, ...slowly, ...short, ...stepped].filter(each => each.target === target).reduce((sum, each) => sum + each.answered, 0)
    const { tokens } = session.work('bench-burst')
    await verifyTotals(target, { ok, inputTokens: ok * tokens.input, outputTokens: ok * tokens.output })
  }
  await session.stop()
  return findings({ burst, paced, firsts, whole })
}

/** What a target adds to the time that the upstream itself takes to its first chunk, milliseconds. */
const added = (block: Block, ...names: string[]): number => firstByteMs(block(...names)) - firstByteMs(block('direct'))

function rows ({ burst, paced, firsts, whole }: Measured): Row[] {
  const e = ['e', 'e2']
  const atOnce = ratio(burst, cpuUs, ['chain'], e)
  const slowly = ratio(paced, cpuUs, ['chain'], e)
  return [{
    name: 'sse_vs_e_cpu',
    measure: `CPU per stream of ${sseEvents} events, over e; the worse of at once and one a millisecond`,
    value: Math.max(atOnce, slowly),
    reach: { atMost: 1.05 },
    aaSpread: Math.max(twinSpread(burst, cpuUs, 'e', 'e2'), twinSpread(paced, cpuUs, 'e', 'e2')),
    note: `at once ${atOnce.toFixed(2)}, paced ${slowly.toFixed(2)}; reads = writes in ${Math.round((whole.get('chain') ?? 0) * 100)} % of streams`,
  }, {
    name: 'ttfc_vs_d',
    measure: 'added time to first chunk, over d\'s',
    value: overBlocks(firsts, block => added(block, 'chain') / added(block, 'd', 'd2')),
    reach: { atMost: 1 },
    aaSpread: Math.abs(overBlocks(firsts, block => added(block, 'd2') / added(block, 'd')) - 1),
  }]
}

function findings (measured: Measured): Findings {
  const { burst, paced, firsts, whole } = measured
  const names = new Set([...burst.keys(), ...firsts.keys(), ...whole.keys()])
  return {
    rows: rows(measured),
    details: [...names].map(name => ({
      suite: 'stream',
      target: name,
      'CPU us at once': level(burst, cpuUs, name),
      'CPU us paced': level(paced, cpuUs, name),
      'first chunk ms': level(firsts, firstByteMs, name),
      'added ms': overBlocks(firsts, block => added(block, name)),
      'reads = writes': whole.get(name) ?? NaN,
    })),
  }
}
