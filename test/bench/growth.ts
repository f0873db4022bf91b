/** `--growth`: one table of costs as work grows. Each line should stay flat, or grow in step with the work itself. */
import { closed, interleave, lane } from './rounds.js'
import { table } from './report.js'
import type { Session } from './session.js'
import { holdStreams, mostStreams } from './suites/open-streams.js'
import { measureScrape } from './suites/scrape.js'
import { cpuUs, level } from './windows.js'

interface Point {
  readonly what: string
  readonly size: number
  readonly cost: number
  readonly unit: string
}

/** CPU of one small request while that many keys, or groups, are configured. */
async function configured (session: Session, what: 'keys' | 'groups', size: number): Promise<Point> {
  const env = what === 'keys' ? { BENCH_KEYS: String(size) } : { BENCH_GROUPS: String(size) }
  const target = await session.start('chain', 'chain', { env })
  const each = lane(target, session.work('bench-small'), 'as-upstream')
  const results = await interleave(session, [each], closed(64), { rounds: session.pick({ quick: 4, full: 10 }), windowMs: 400, warmMs: 1_500 })
  await session.stop()
  return { what, size, cost: level(results, cpuUs, 'chain'), unit: 'us CPU per request' }
}

async function body (session: Session, kilobytes: number): Promise<Point> {
  const target = await session.start('chain')
  const each = lane(target, session.work(`bench-body-${kilobytes}k`), 'as-upstream')
  const results = await interleave(session, [each], closed(4), { rounds: session.pick({ quick: 3, full: 8 }), windowMs: 400, warmMs: 800 })
  await session.stop()
  return { what: 'body, KB', size: kilobytes, cost: level(results, cpuUs, 'chain'), unit: 'us CPU per request' }
}

export async function growth (session: Session): Promise<string> {
  const points: Point[] = []
  for (const size of session.pick({ quick: [1e3, 1e5], full: [1e3, 1e4, 1e5, 1e6] })) points.push(await configured(session, 'keys', size))
  for (const size of session.pick({ quick: [10, 1e4], full: [10, 100, 1e3, 1e4] })) points.push(await configured(session, 'groups', size))
  for (const size of session.pick({ quick: [4, 2_048], full: [4, 32, 256, 2_048, 16_384, 32_000] })) points.push(await body(session, size))
  for (const size of session.pick({ quick: [1e3, 1e4], full: [1e3, 3e3, 1e4, 3e4] })) {
    const { ownMs, series } = await measureScrape(session, size)
    points.push({ what: 'series', size: series, cost: ownMs, unit: 'ms of event loop per scrape' })
  }
  for (const size of session.pick({ quick: [100, 1e3], full: [10, 100, 1e3, 1e4] })) {
    const { streams, kilobytes } = await holdStreams(session, 'chain', mostStreams(size))
    points.push({ what: 'open streams', size: streams, cost: kilobytes, unit: 'KB each' })
  }
  return table(['what grows', 'size', 'cost', 'unit', 'cost per unit of size'], points.map(({ what, size, cost, unit }) => [
    what, String(size), cost.toFixed(1), unit, (cost / size).toPrecision(3),
  ]))
}
