/**
 * Windows of load on several targets, interleaved: every round visits each target once, every other round backwards, so
 * that a slow drift of the machine and the place in the order hit all alike. Each window is checked against what reached
 * the upstream, and taken again where another program took part of the processor meanwhile.
 */
import type { Exchange } from './load/connection.js'
import { closedLoop, openLoop, type Load } from './load/generators.js'
import { busyUs } from './machine.js'
import type { Session } from './session.js'
import type { Target } from './target.js'
import type { UpstreamCounts } from './upstream.js'
import { requestBytes, unknownKey, type Work } from './work.js'
import type { Results, Window } from './windows.js'

/** One target under one kind of request. */
export interface Lane {
  readonly name: string
  readonly target: Target
  readonly exchange: Exchange
  /** The exchange that is next, where they are not all the same. */
  readonly next?: () => Exchange
  /** Whether the requests get as far as the upstream, and as whose. */
  readonly reaches: 'no' | 'as-caller' | 'as-upstream' | 'unknown'
  /** Requests that were answered in all, for the target's own totals. */
  answered: number
}

export interface Drive {
  readonly run: (lane: Lane, durationMs: number) => Promise<Load>
  /** Whether the mock upstream polls its sockets meanwhile, as the callers of a closed loop do. */
  readonly polls: boolean
}

export function lane (target: Target, work: Work, reaches: Lane['reaches'], name = target.name): Lane {
  const reply = reaches === 'unknown' ? null : work.reply
  return { name, target, exchange: { bytes: requestBytes(work), status: 200, reply }, reaches, answered: 0 }
}

/** A caller whose key nobody knows: refused before anything reaches the upstream. */
export function refusedLane (target: Target, work: Work, name = target.name): Lane {
  return { name, target, exchange: { bytes: requestBytes(work, unknownKey), status: 401, reply: null }, reaches: 'no', answered: 0 }
}

/** `polls` false is for rates that an open loop is derived from: its callers sleep. */
export function closed (connections: number, polls = true): Drive {
  return { polls, run: (lane, durationMs) => closedLoop(lane.target.callers, lane.next ?? (() => lane.exchange), connections, durationMs, polls) }
}

export function open (perSecond: number): Drive {
  return { polls: false, run: (lane, durationMs) => openLoop(lane.target.callers, lane.exchange, perSecond, durationMs) }
}

function check (lane: Lane, requests: number, before: UpstreamCounts, after: UpstreamCounts): void {
  const rose = (name: keyof UpstreamCounts, expected: number): void => {
    const seen = after[name] - before[name]
    if (seen !== expected) throw new Error(`${lane.name}: ${requests} requests, but the upstream's count of ${name} rose by ${seen} instead of ${expected}`)
  }
  if (lane.reaches === 'unknown') return
  rose('requests', lane.reaches === 'no' ? 0 : requests)
  rose('altered', 0)
  rose('swapped', lane.reaches === 'as-upstream' ? requests : 0)
  rose('leaked', lane.reaches === 'as-caller' ? requests : 0)
}

/** One window. `foreignShare` is the processor time of programs that are not part of the run, in cores. */
async function driven (session: Session, lane: Lane, { run, polls }: Drive, durationMs: number): Promise<Window & { readonly foreignShare: number }> {
  const before = await session.upstream.tell(polls ? 'poll' : 'counts')
  const usageBefore = await lane.target.usage()
  const ownBefore = process.cpuUsage()
  const busyBefore = busyUs()
  const load = await run(lane, durationMs)
  const busy = busyUs() - busyBefore
  const own = process.cpuUsage(ownBefore)
  const usageAfter = await lane.target.usage()
  const after = await session.upstream.tell('counts')
  lane.answered += load.requests
  check(lane, load.requests, before, after)
  const rise = (field: 'cpuUs' | 'markCompacts'): number => usageBefore === null || usageAfter === null ? NaN : usageAfter[field] - usageBefore[field]
  const cpuUs = rise('cpuUs')
  const foreign = busy - cpuUs - own.user - own.system - (after.cpuUs - before.cpuUs)
  return { load, cpuUs, markCompacts: rise('markCompacts'), foreignShare: foreign / load.elapsedMs / 1000 }
}

export interface Plan {
  /** Even: two rounds, one forwards and one backwards, are read as one. */
  readonly rounds: number
  readonly windowMs: number
  /** A run before the first window, for compilers and pools; 0 for none. */
  readonly warmMs: number
  /** A run before each window that does not count: sockets that idled are opened again there. Default 50. */
  readonly rampMs?: number
}

/** Share of a core that other programs may take in a window: the kernel's count is in steps of 10 ms. */
const maxForeignShare = 0.1

export async function interleave (session: Session, lanes: readonly Lane[], drive: Drive, plan: Plan): Promise<Results> {
  const { rounds, windowMs, warmMs, rampMs = 50 } = plan
  if (warmMs > 0) for (const each of lanes) await driven(session, each, drive, warmMs)
  const results = new Map<string, Window[]>(lanes.map(each => [each.name, []]))
  let repeats = rounds * lanes.length / 4
  for (let round = 0; round < rounds; round++) {
    for (const each of round % 2 === 0 ? lanes : lanes.toReversed()) {
      if (rampMs > 0) await driven(session, each, drive, rampMs)
      let window = await driven(session, each, drive, windowMs)
      for (; window.foreignShare > maxForeignShare && repeats > 0; repeats--) {
        session.disturbed += 1
        window = await driven(session, each, drive, windowMs)
      }
      results.get(each.name)?.push(window)
    }
  }
  return results
}
