/** `--growth`: one table of costs as work grows. Each line should stay flat, or grow in step with the work itself. */
import type { Exchange } from './load/connection.js'
import { closed, interleave, lane, type Lane } from './rounds.js'
import { table } from './report.js'
import { otherKey } from './servers/other-keys.js'
import type { Session } from './session.js'
import { holdStreams, mostStreams } from './suites/open-streams.js'
import { measureScrape } from './suites/scrape.js'
import type { NodeTarget } from './target.js'
import { cpuUs, level, perSecond } from './windows.js'
import { requestBytes } from './work.js'

interface Point {
  readonly what: string
  readonly size: number
  readonly cost: number
  readonly unit: string
  readonly perSecond?: number
}

/** Callers with keys of their own, scattered over all there are: so many that their first lookups stay below the limit of 5,000 a second. */
function callersOf (session: Session, size: number): () => Exchange {
  const work = session.work('bench-small')
  const count = Math.min(size, 2_000)
  const step = Math.floor(size / count)
  const exchanges = Array.from({ length: count }, (_, at): Exchange => ({ bytes: requestBytes(work, otherKey(at * step)), status: 200, reply: work.reply }))
  let next = 0
  return () => {
    next = (next + 7919) % count
    return exchanges[next] ?? { bytes: requestBytes(work), status: 200, reply: work.reply }
  }
}

async function cost (session: Session, each: Lane, connections: number): Promise<{ cost: number, perSecond: number }> {
  const results = await interleave(session, [each], closed(connections), session.pick({
    quick: { rounds: 4, windowMs: 300, warmMs: 1_200 },
    full: { rounds: 8, windowMs: 400, warmMs: 2_000 },
  }))
  await session.stop()
  return { cost: level(results, cpuUs, each.name), perSecond: level(results, perSecond, each.name) }
}

/** CPU of one small request while that many keys, or groups, are configured and call by turns. */
async function configured (session: Session, what: 'keys' | 'groups', size: number): Promise<Point> {
  const env = { BENCH_KEYS: String(size), ...what === 'groups' ? { BENCH_GROUPS: String(size) } : {} }
  const target = await session.start('chain', 'chain', { env })
  const each = { ...lane(target, session.work('bench-small'), 'as-upstream'), next: callersOf(session, size) }
  return { what, size, ...await cost(session, each, 64), unit: 'us CPU per request' }
}

async function body (session: Session, kilobytes: number): Promise<Point> {
  const target = await session.start('chain')
  const model = kilobytes === 1 ? 'bench-small' : `bench-body-${kilobytes}k`
  return { what: 'body, KB', size: kilobytes, ...await cost(session, lane(target, session.work(model), 'as-upstream'), 4), unit: 'us CPU per request' }
}

/** On all cores, beside the callers and the mock upstream. */
async function workers (session: Session, size: number): Promise<Point> {
  const target: NodeTarget = await session.start('workers', 'workers', { env: { BENCH_SIZE: String(size) }, anywhere: true })
  return { what: 'workers', size, ...await cost(session, lane(target, session.work('bench-small'), 'as-upstream'), 64), unit: 'us CPU per request' }
}

export async function growth (session: Session): Promise<string> {
  const points: Point[] = []
  for (const size of session.pick({ quick: [1e3, 1e5], full: [1e3, 1e4, 1e5, 1e6] })) points.push(await configured(session, 'keys', size))
  for (const size of session.pick({ quick: [10, 1e4], full: [10, 100, 1e3, 1e4] })) points.push(await configured(session, 'groups', size))
  for (const size of session.pick({ quick: [4, 2_048], full: [1, 4, 32, 256, 2_048, 16_384, 32_000] })) points.push(await body(session, size))
  for (const size of [1, 2]) points.push(await workers(session, size))
  for (const size of session.pick({ quick: [1e3, 1e4], full: [1e3, 3e3, 1e4, 3e4] })) {
    const { ownMs, series } = await measureScrape(session, size)
    points.push({ what: 'series', size: series, cost: ownMs, unit: 'ms of event loop per scrape' })
  }
  for (const size of session.pick({ quick: [100, 1e3], full: [10, 100, 1e3, 1e4] })) {
    const { streams, kilobytes } = await holdStreams(session, 'chain', mostStreams(size))
    points.push({ what: 'open streams', size: streams, cost: kilobytes, unit: 'KB each' })
  }
  return table(['what grows', 'size', 'cost', 'unit', 'cost per unit of size', 'req/s'], points.map(({ what, size, cost, unit, perSecond }) => [
    what, String(size), cost.toFixed(1), unit, (cost / size).toPrecision(3), perSecond?.toFixed(0) ?? '',
  ]))
}
