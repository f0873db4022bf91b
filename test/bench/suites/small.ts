/**
 * A 1 KB chat request and a 700-byte reply. The same processes are measured three ways: 64 callers without pause tell
 * throughput and cost, one of them with an unknown key tells the cost of a refusal, and requests by the clock, at half of
 * the bare proxy's capacity, tell latency.
 */
import { closed, inTurn, interleave, joined, lane, open, refusedLane, type Lane } from '../rounds.js'
import type { Detail, Findings } from '../report.js'
import type { Session } from '../session.js'
import type { NodeTarget } from '../target.js'
import { verifyTarget, verifyTotals } from '../verify.js'
import { cpuUs, level, p50Ms, p99Ms, perSecond, pooled, ratio, typical, type Results } from '../windows.js'
import { smallRows } from './small-rows.js'

const d = ['d', 'd2']
const e = ['e', 'e2']

interface Cast {
  readonly ours: readonly NodeTarget[]
  readonly refusing: NodeTarget
  readonly lanes: readonly Lane[]
}

async function cast (session: Session): Promise<Cast> {
  const work = session.work('bench-small')
  const bare = [await session.start('d'), await session.start('e')]
  const ours = [await session.start('chain'), await session.start('dropin'), await session.start('pool')]
  const refusing = await session.start('chain 401', 'chain')
  const twins = [await session.start('e2', 'e'), await session.start('d2', 'd')]
  const floors = session.mode === 'full' ? [await session.start('c2'), ...await session.nginx()] : []
  return {
    ours,
    refusing,
    lanes: [
      ...bare.map(target => lane(target, work, 'as-caller')),
      ...ours.map(target => lane(target, work, 'as-upstream')),
      refusedLane(refusing, work),
      ...[...twins, ...floors].map(target => lane(target, work, 'as-caller')),
      ...session.others().map(target => lane(target, work, 'unknown')),
    ],
  }
}

interface Measured {
  readonly steady: Results
  readonly clocked: Results
  readonly rate: number
}

/** Half of what the bare proxy can do with callers that sleep on their sockets, as those by the clock do. */
async function rateOf (session: Session, bare: readonly Lane[]): Promise<number> {
  const results = await interleave(session, bare, closed(64, false), {
    rounds: 4, windowMs: session.pick({ quick: 120, full: 250 }), warmMs: 0,
  })
  return level(results, perSecond, ...d) / 2
}

async function generation (session: Session, at: number, knownRate: number): Promise<Measured> {
  const { ours, refusing, lanes } = await cast(session)
  const steady = await interleave(session, inTurn(at, lanes), closed(64), session.pick({
    quick: { rounds: 8, windowMs: 100, warmMs: 500 },
    full: { rounds: 12, windowMs: 250, warmMs: 1200, warmRequests: 12_000 },
  }))
  const named = (...names: string[]): Lane[] => lanes.filter(({ name }) => names.includes(name))
  const rate = knownRate > 0 ? knownRate : await rateOf(session, named(...d))
  const beside = session.mode === 'full' ? [lane(session.direct(), session.work('bench-small'), 'as-caller'), ...named('e')] : []
  const clocked = await interleave(session, inTurn(at, [...named('d', 'chain', 'd2'), ...beside]), open(rate), session.pick({
    quick: { rounds: 4, windowMs: 150, warmMs: 0 },
    full: { rounds: 12, windowMs: 400, warmMs: 0 },
  }))
  for (const target of ours) await verifyTarget(target, session.work('bench-small'), lanes)
  await verifyTotals(refusing, { ok: 0, inputTokens: 0, outputTokens: 0, refused: named(refusing.name)[0]?.answered ?? 0 })
  await session.stop()
  return { steady, clocked, rate }
}

export async function small (session: Session): Promise<Findings> {
  const all: Measured[] = []
  for (let at = 0; at < 2; at++) all.push(await generation(session, at, all[0]?.rate ?? 0))
  // The windows of a peer from before it was lost are no series.
  const steady: Results = new Map([...joined(all.map(each => each.steady))].filter(([name]) => !session.lost.has(name)))
  const clocked = joined(all.map(each => each.clocked))
  return { rows: smallRows(steady, clocked, all[0]?.rate ?? NaN), details: [...details(steady), ...latencies(clocked)] }
}

function details (results: Results): Detail[] {
  return [...results.keys()].map(name => ({
    suite: 'small',
    target: name,
    'CPU us': level(results, cpuUs, name),
    'CPU vs e': ratio(results, cpuUs, [name], e),
    'CPU vs d': ratio(results, cpuUs, [name], d),
    'req/s': level(results, perSecond, name),
    'req/s vs d': ratio(results, perSecond, [name], d),
  }))
}

function latencies (results: Results): Detail[] {
  return [...results.keys()].map(name => ({
    suite: 'small',
    target: `${name}, by the clock`,
    'p50 ms': pooled(results, p50Ms, name),
    'p99 ms': typical(results, p99Ms, name),
  }))
}
