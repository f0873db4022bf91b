/**
 * Windows of load on several targets, interleaved: every round visits each target once, every other round backwards,
 * so that a slow drift of the machine hits all alike. Each window is checked against what reached the upstream.
 */
import type { Exchange } from './load/connection.js'
import { closedLoop, openLoop, type Load } from './load/generators.js'
import type { Session } from './session.js'
import { median, quantile, undisturbed } from './stats.js'
import type { Target } from './target.js'
import { requestBytes, type Work } from './work.js'

/** One target under one kind of request. */
export interface Lane {
  readonly name: string
  readonly target: Target
  readonly exchange: Exchange
  /** Whether the requests get as far as the upstream, and as whose. */
  readonly reaches: 'no' | 'as-caller' | 'as-upstream' | 'unknown'
  /** Requests that were answered in all, for the target's own totals. */
  answered: number
}

export interface Window {
  readonly load: Load
  /** Microseconds of processor time for one request, NaN where the process is not ours. */
  readonly cpuUs: number
  readonly perSecond: number
}

export type Results = ReadonlyMap<string, readonly Window[]>

export type Drive = (lane: Lane, durationMs: number) => Promise<Load>

export function lane (target: Target, work: Work, reaches: Lane['reaches'], name = target.name): Lane {
  const reply = reaches === 'unknown' ? null : work.reply
  return { name, target, exchange: { bytes: requestBytes(work), status: 200, reply }, reaches, answered: 0 }
}

export const closed = (connections: number): Drive => (lane, durationMs) =>
  closedLoop(lane.target.callers, lane.exchange, connections, durationMs)

export const open = (perSecond: number): Drive => (lane, durationMs) =>
  openLoop(lane.target.callers, lane.exchange, perSecond, durationMs)

async function driven (session: Session, lane: Lane, drive: Drive, durationMs: number): Promise<Load> {
  const before = await session.upstream.tell('counts')
  const load = await drive(lane, durationMs)
  const after = await session.upstream.tell('counts')
  lane.answered += load.requests
  const check = (name: keyof typeof before, expected: number): void => {
    const seen = after[name] - before[name]
    if (seen !== expected) throw new Error(`${lane.name}: ${load.requests} requests, but the upstream's count of ${name} rose by ${seen} instead of ${expected}`)
  }
  if (lane.reaches === 'unknown') return load
  check('requests', lane.reaches === 'no' ? 0 : load.requests)
  check('altered', 0)
  check('swapped', lane.reaches === 'as-upstream' ? load.requests : 0)
  check('leaked', lane.reaches === 'as-caller' ? load.requests : 0)
  return load
}

export interface Plan {
  readonly rounds: number
  readonly windowMs: number
  /** A run before the first window, for compilers and pools; 0 for none. */
  readonly warmMs: number
  /** A run before each window that does not count: sockets that idled are opened again there. Default 120. */
  readonly rampMs?: number
}

export async function interleave (session: Session, lanes: readonly Lane[], drive: Drive, plan: Plan): Promise<Results> {
  const { rounds, windowMs, warmMs, rampMs = 120 } = plan
  if (warmMs > 0) for (const each of lanes) await driven(session, each, drive, warmMs)
  const results = new Map<string, Window[]>(lanes.map(each => [each.name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const each of round % 2 === 0 ? lanes : lanes.toReversed()) {
      if (rampMs > 0) await driven(session, each, drive, rampMs)
      const before = await each.target.usage()
      const load = await driven(session, each, drive, windowMs)
      const after = await each.target.usage()
      const cpu = before === null || after === null ? NaN : after.cpuUs - before.cpuUs
      results.get(each.name)?.push({ load, cpuUs: cpu / load.requests, perSecond: load.requests / load.elapsedMs * 1000 })
    }
  }
  return results
}

/** One number for the windows of all the names given: two names of one program are one sample. */
export type Read = (results: Results, ...names: string[]) => number

function over (results: Results, names: readonly string[], better: 'lower' | 'higher', read: (window: Window) => number): number {
  return undisturbed(names.flatMap(name => (results.get(name) ?? []).map(read)), better)
}

export const cpuUs: Read = (results, ...names) => over(results, names, 'lower', window => window.cpuUs)
export const perSecond: Read = (results, ...names) => over(results, names, 'higher', window => window.perSecond)
export const p50Ms: Read = (results, ...names) => over(results, names, 'lower', window => median(window.load.latenciesMs))
export const p99Ms: Read = (results, ...names) => over(results, names, 'lower', window => quantile(window.load.latenciesMs, 0.99))
export const firstByteMs: Read = (results, ...names) => over(results, names, 'lower', window => median(window.load.firstByteMs))
