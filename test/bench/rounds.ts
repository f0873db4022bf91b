/**
 * Windows of load on several targets, interleaved: every round visits each target once, so that a slow drift of the
 * machine hits all alike. Each window is checked against what reached the upstream, and taken again where another program
 * took part of the processor meanwhile.
 *
 * The order is the same in every round, so that each target pauses equally long: V8 collects otherwise after a pause.
 * With every other round backwards, the first and the last target ran two windows in a row, and a 10 MB reply cost them a
 * third less than the same program in the middle.
 *
 * The warm-up goes in rounds too. A target that idles for more than four seconds loses its sockets to the upstream
 * (undici's keep-alive), and what its compilers learned with them: the next second costs it up to three times as much.
 * Warmed one after the other, the first of two twins came out a tenth dearer than the second.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Exchange } from './load/connection.js'
import { closedLoop, openLoop, type Load } from './load/generators.js'
import { busyUs } from './machine.js'
import type { Session, Upstream } from './session.js'
import type { Target } from './target.js'
import type { UpstreamCounts } from './upstream.js'
import { requestBytes, unknownKey, type Work } from './work.js'
import { blockRounds, type Results, type Window } from './windows.js'

/** What a window needs of a session: the counts of the upstream, and where to note what was disturbed. */
export type Driven = Pick<Session, 'disturbed' | 'lost'> & { readonly upstream: Pick<Upstream, 'tell'> }

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
  return {
    polls, run: (lane, durationMs) => closedLoop(lane.target.callers, lane.next ?? (() => lane.exchange), connections, durationMs, polls),
  }
}

export function open (perSecond: number): Drive {
  return { polls: false, run: (lane, durationMs) => openLoop(lane.target.callers, lane.exchange, perSecond, durationMs) }
}

function check (lane: Lane, requests: number, before: UpstreamCounts, after: UpstreamCounts): void {
  const rose = (name: keyof UpstreamCounts, expected: number): void => {
    const seen = after[name] - before[name]
    if (seen !== expected) {
      throw new Error(`${lane.name}: ${requests} requests, but the upstream's count of ${name} rose by ${seen} instead of ${expected}`)
    }
  }
  if (lane.reaches === 'unknown') return
  rose('requests', lane.reaches === 'no' ? 0 : requests)
  rose('altered', 0)
  rose('swapped', lane.reaches === 'as-upstream' ? requests : 0)
  rose('leaked', lane.reaches === 'as-caller' ? requests : 0)
}

/** One window. `foreignMs` is the processor time of programs that are not part of the run. */
async function driven (
  session: Driven, lane: Lane, { run, polls }: Drive, durationMs: number
): Promise<Window & { readonly foreignMs: number }> {
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
  const rise = (field: 'cpuUs' | 'markCompacts'): number => usageBefore === null || usageAfter === null
    ? NaN
    : usageAfter[field] - usageBefore[field]
  const cpuUs = rise('cpuUs')
  const foreign = busy - cpuUs - own.user - own.system - (after.cpuUs - before.cpuUs)
  return { load, cpuUs, markCompacts: rise('markCompacts'), foreignMs: foreign / 1000 }
}

/**
 * What broke off a window is told with the target's name, and with its end where it has ended. Null: it was a program that is
 * not ours, which is left out from now on.
 */
async function window (session: Driven, lane: Lane, drive: Drive, durationMs: number): Promise<Awaited<ReturnType<typeof driven>> | null> {
  if (session.lost.has(lane.name)) return null
  try {
    return await driven(session, lane, drive, durationMs)
  } catch (error) {
    await sleep(100)
    const end = lane.target.end?.() ?? null
    const why = `${error instanceof Error ? error.message : String(error)}${end === null ? '' : `; ${end}`}`
    if (lane.reaches !== 'unknown') throw new Error(`${lane.name}: ${why}`, { cause: error })
    session.lost.set(lane.name, why)
    return null
  }
}

export interface Plan {
  /** A multiple of the four that are read as one. */
  readonly rounds: number
  readonly windowMs: number
  /** The least load on each target before the first window, for compilers and pools; 0 for none. */
  readonly warmMs: number
  /** The least requests to each target before it. @defaultValue 0 */
  readonly warmRequests?: number
}

/** What undici keeps an idle socket for is 4 s: no target waits longer for its next turn. */
const maxRoundMs = 3_500

/** Processor time that other programs may take in a window: a tenth of a core, and the grain of the kernel's counts. */
const maxForeignShare = 0.1
const grainMs = 25

const sliceMs = 125
/** A target is warm once so many slices in a row were not cheaper than the best before them by more than a share. */
const flatSlices = 3
const flatShare = 0.04

/** After these turns of the warm-up all connections are closed, on both sides. */
const closingTurns: readonly number[] = [2, 4]
const closeMs = 100

/**
 * What every program meets in its first minute, and callers that keep their connections spare it: the first socket that closes changes the
 * shapes that compiled code relies on. Met in the middle of a measurement, 190 functions of the larger programs were thrown away at once,
 * and the next five thousand requests cost up to eight times as much.
 */
async function closeAll ({ upstream }: Driven, lanes: readonly Lane[]): Promise<void> {
  for (const { target } of lanes) target.callers.close()
  await upstream.tell('hang up')
  await sleep(closeMs)
}

/**
 * Load that is no measurement, by turns: on each target for `leastMs`, and up to four times as long until it has answered `leastRequests`
 * and its cost is flat. Its compilers count calls and not time: on a slow machine the same time leaves the larger program half compiled.
 */
export async function warmed (session: Driven, lanes: readonly Lane[], drive: Drive, leastMs: number, leastRequests = 0): Promise<void> {
  const costs = new Map<Lane, { best: number, flat: number }>(lanes.map(each => [each, { best: Infinity, flat: 0 }]))
  const isCold = (each: Lane): boolean =>
    !session.lost.has(each.name) && ((costs.get(each)?.flat ?? 0) < flatSlices || each.answered < leastRequests)
  for (let turn = 1; turn * sliceMs <= 4 * leastMs && (turn * sliceMs <= leastMs || lanes.some(isCold)); turn++) {
    // The warm ones wait for the others, but not for so long that they cool down.
    const turnOfAll = turn * sliceMs <= leastMs || turn % 4 === 0
    for (const each of lanes) {
      if (!turnOfAll && !isCold(each)) continue
      const taken = await window(session, each, drive, sliceMs)
      if (taken === null) continue
      const { cpuUs, load } = taken
      const cost = (Number.isFinite(cpuUs) ? cpuUs : load.elapsedMs) / load.requests
      const { best, flat } = costs.get(each) ?? { best: Infinity, flat: 0 }
      costs.set(each, cost < best * (1 - flatShare) ? { best: cost, flat: 0 } : { best, flat: flat + 1 })
    }
    if (closingTurns.includes(turn)) await closeAll(session, lanes)
  }
}

export async function interleave (session: Driven, lanes: readonly Lane[], drive: Drive, plan: Plan): Promise<Results> {
  const { rounds, windowMs, warmMs, warmRequests } = plan
  if (rounds % blockRounds !== 0) throw new Error(`${rounds} rounds do not make whole blocks of ${blockRounds}`)
  if (windowMs * lanes.length > maxRoundMs) throw new Error(`a round over ${lanes.length} targets lasts longer than idle sockets live`)
  if (warmMs > 0) await warmed(session, lanes, drive, warmMs, warmRequests)
  const results = new Map<string, Window[]>(lanes.map(each => [each.name, []]))
  let repeats = rounds * lanes.length / 4
  for (let round = 0; round < rounds; round++) {
    for (const each of lanes) {
      let taken = await window(session, each, drive, windowMs)
      const isDisturbed = (): boolean => taken !== null && taken.foreignMs > taken.load.elapsedMs * maxForeignShare + grainMs
      for (; isDisturbed() && repeats > 0; repeats--) {
        session.disturbed.again += 1
        taken = await window(session, each, drive, windowMs)
      }
      if (isDisturbed()) session.disturbed.kept += 1
      if (taken !== null) results.get(each.name)?.push(taken)
    }
  }
  for (const name of session.lost.keys()) results.delete(name)
  return results
}

/** Targets and the load on them, set up afresh. */
export interface Scene {
  readonly lanes: readonly Lane[]
  /** Throws where the targets' own totals are not what their callers got. */
  readonly verify: () => Promise<void>
}

/**
 * The same scene with new processes, several times: what one process got by luck of its compilers and its place in
 * memory, another gets otherwise. Every other generation is measured in the opposite order.
 */
export async function generations (session: Session, count: number, set: () => Promise<Scene>, drive: Drive, plan: Plan): Promise<Results> {
  const found: Results[] = []
  for (let generation = 0; generation < count; generation++) {
    const { lanes, verify } = await set()
    found.push(await interleave(session, inTurn(generation, lanes), drive, plan))
    await verify()
    await session.stop()
  }
  return joined(found)
}

export function inTurn<T> (generation: number, order: readonly T[]): readonly T[] {
  return generation % 2 === 0 ? order : order.toReversed()
}

/** The windows of all generations, one generation after the other. */
export function joined (generations: readonly Results[]): Results {
  const names = new Set(generations.flatMap(results => [...results.keys()]))
  return new Map([...names].map(name => [name, generations.flatMap(results => results.get(name) ?? [])]))
}
