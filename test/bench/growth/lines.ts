/** The lines of `--growth`: what grows, how its cost should behave, and how it is measured. */
import type { Exchange } from '../load/connection.js'
import { closed, generations, lane, open, type Drive, type Lane, type Plan, type Scene } from '../rounds.js'
import { otherKey } from '../servers/other-keys.js'
import type { Session } from '../session.js'
import { holdStreams, mostStreams } from '../suites/open-streams.js'
import { measureScrape } from '../suites/scrape.js'
import { cpuUs, level, perSecond, type Results } from '../windows.js'
import { requestBytes } from '../work.js'

export interface Point {
  readonly size: number
  readonly cost: number
  readonly perSecond?: number
}

export interface Line {
  readonly what: string
  readonly unit: string
  /** `flat`: the cost does not depend on the size. `linear`: each one more costs the same. */
  readonly shape: 'flat' | 'linear'
  /** Why it bends where it bends. */
  readonly why: string
  readonly measure: (session: Session) => Promise<Point[]>
}

const processorTime = 'us CPU per request'

/** All sizes of a line run side by side and are measured by turns, so that the machine is the same for all. */
async function bySize (
  session: Session, sizes: readonly number[], laneOf: (size: number) => Promise<Lane>, driveOf: (name: string) => Drive, plan: Plan
): Promise<Point[]> {
  const scene = async (): Promise<Scene> => {
    const lanes: Lane[] = []
    for (const size of sizes) lanes.push({ ...await laneOf(size), name: String(size) })
    return { lanes, verify: async () => {} }
  }
  const drive: Drive = { polls: driveOf('').polls, run: async (each, durationMs) => await driveOf(each.name).run(each, durationMs) }
  const results: Results = await generations(session, session.pick({ quick: 1, full: 2 }), scene, drive, plan)
  return sizes.map(size => ({ size, cost: level(results, cpuUs, String(size)), perSecond: level(results, perSecond, String(size)) }))
}

const plans = {
  quick: { rounds: 4, windowMs: 200, warmMs: 750 },
  full: { rounds: 12, windowMs: 250, warmMs: 1_250 },
}

/** A thousand callers with keys of their own, scattered over all there are. */
const activeCallers = 1_000

function scattered (session: Session, step: number): () => Exchange {
  const work = session.work('bench-small')
  const exchanges = Array.from(
    { length: activeCallers }, (_, at): Exchange => ({ bytes: requestBytes(work, otherKey(at * step)), status: 200, reply: work.reply })
  )
  let next = 0
  return () => {
    next = (next + 7919) % activeCallers
    return exchanges[next] ?? { bytes: requestBytes(work), status: 200, reply: work.reply }
  }
}

function configured (
  sizes: Record<'quick' | 'full', readonly number[]>, env: (size: number) => Record<string, string>, step: (size: number) => number
): Line['measure'] {
  return async session => await bySize(session, session.pick(sizes), async size => {
    const target = await session.start('chain', 'chain', { env: env(size) })
    return { ...lane(target, session.work('bench-small'), 'as-upstream'), next: scattered(session, step(size)) }
  }, () => closed(64), session.pick(plans))
}

async function bodies (session: Session): Promise<Point[]> {
  const sizes = session.pick({ quick: [1, 256, 2_048], full: [1, 4, 32, 256, 2_048, 16_384, 32_000] })
  return await bySize(session, sizes, async size => {
    return lane(await session.start('chain'), session.work(size === 1 ? 'bench-small' : `bench-body-${size}k`), 'as-upstream')
  }, () => closed(4), session.pick(plans))
}

async function workersOnOneCore (session: Session): Promise<Point[]> {
  return await bySize(session, [1, 2, 4], async size => {
    const target = await session.start('workers', 'workers', { env: { BENCH_SIZE: String(size) } })
    return lane(target, session.work('bench-small'), 'as-upstream')
  }, () => closed(64), session.pick({
    quick: { rounds: 4, windowMs: 300, warmMs: 1_500 }, full: { rounds: 12, windowMs: 400, warmMs: 3_000 },
  }))
}

/** Requests a second for each worker: about a quarter of what one can do. */
const ratePerWorker = 2_500

async function workersOnTwoCores (session: Session): Promise<Point[]> {
  return await bySize(session, [1, 2], async size => {
    const target = await session.start('workers', 'workers', { env: { BENCH_SIZE: String(size) }, anywhere: true })
    return lane(target, session.work('bench-small'), 'as-upstream')
  }, name => open(ratePerWorker * Number(name)), session.pick(plans))
}

async function series (session: Session): Promise<Point[]> {
  const points: Point[] = []
  for (const size of session.pick({ quick: [1e3, 1e4], full: [1e3, 3e3, 1e4, 3e4] })) {
    const found = await measureScrape(session, size)
    points.push({ size: found.series, cost: (found.ownMs + found.againMs) / 2 })
  }
  return points
}

async function streams (session: Session): Promise<Point[]> {
  const points: Point[] = []
  for (const size of session.pick({ quick: [100, 1e3], full: [10, 100, 1e3, 1e4] })) {
    const { streams, kilobytes } = await holdStreams(session, 'chain', mostStreams(size))
    points.push({ size: streams, cost: streams * kilobytes / 1024 })
  }
  return points
}

export const lines: readonly Line[] = [{
  what: 'keys',
  unit: processorTime,
  shape: 'flat',
  why: 'a thousand of them call; a look-up is one step in a table, but a larger table misses the processor\'s caches more often',
  measure: configured(
    { quick: [1e3, 1e5], full: [1e3, 1e4, 1e5, 1e6] }, size => ({ BENCH_KEYS: String(size) }), size => size / activeCallers
  ),
}, {
  what: 'groups',
  unit: processorTime,
  shape: 'flat',
  why: '10,000 keys, a thousand of them call; up to a thousand groups are in use, each with limits and series of its own',
  measure: configured(
    { quick: [10, 1e4], full: [10, 100, 1e3, 1e4] }, size => ({ BENCH_KEYS: '10000', BENCH_GROUPS: String(size) }), () => 7
  ),
}, {
  what: 'tenants',
  unit: processorTime,
  shape: 'flat',
  why: 'each a group of its own with one key, all of a thousand call',
  measure: configured(
    { quick: [1e3, 1e4], full: [1e3, 1e4, 1e5] }, size => ({ BENCH_KEYS: String(size), BENCH_GROUPS: String(size) }),
    size => size / activeCallers
  ),
}, {
  what: 'budgets',
  unit: processorTime,
  shape: 'linear',
  why: 'a group has so many; each request is held and settled in all of them, in one decision',
  measure: configured({ quick: [1, 4, 16], full: [1, 4, 16] }, size => ({ BENCH_KEYS: '1000', BENCH_BUDGETS: String(size) }), () => 1),
}, {
  what: 'body, KB',
  unit: processorTime,
  shape: 'linear',
  why: 'a request costs as much as its first 30 KB; beyond 64 KB a body comes in many reads, is copied once, parsed and checked',
  measure: bodies,
}, {
  what: 'workers on one core',
  unit: `${processorTime}, all together`,
  shape: 'flat',
  why: 'they share nothing; switching between processes on one core costs caches, which cores of their own would not',
  measure: workersOnOneCore,
}, {
  what: 'workers on two cores',
  unit: `${processorTime}, all together`,
  shape: 'flat',
  why: `${ratePerWorker} requests/s for each, below saturation, as callers and upstream need a share of the same cores; the rate ` +
    'doubles with the workers',
  measure: workersOnTwoCores,
}, {
  what: 'series',
  unit: 'ms of event loop per scrape',
  shape: 'linear',
  why: 'each is a line of text',
  measure: series,
}, {
  what: 'open streams',
  unit: 'MB in all',
  shape: 'linear',
  why: 'the first few bring the code and the pools with them',
  measure: streams,
}]
