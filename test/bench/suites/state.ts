/**
 * What the state costs: the small work of the chain, which counts in memory, against the gateway as a user starts it, with lmdb and with
 * Redis.
 */
import type { Detail, Findings, Row } from '../report.js'
import { hasRedis, startRedis } from '../redis.js'
import { closed, interleave, joined, lane, type Lane } from '../rounds.js'
import type { Session } from '../session.js'
import { verifyTarget } from '../verify.js'
import { cpuUs, level, perSecond, quartiles, ratio, twinSpread, type Results } from '../windows.js'

const chain = ['chain', 'chain2']

async function generation (session: Session, at: number, redisUrl: string | null): Promise<Results> {
  const work = session.work('bench-small')
  const env = redisUrl === null ? {} : { BENCH_REDIS: redisUrl }
  const names: Array<readonly [name: string, server: string]> = [
    ['chain', 'chain'], ['s', 's'], ['s memory', 's-memory'], ['chain2', 'chain'],
  ]
  if (redisUrl !== null) names.push(['s redis', 's-redis'])
  const targets = []
  for (const [name, server] of at % 2 === 0 ? names : names.reverse()) targets.push(await session.start(name, server, { env }))
  const lanes: Lane[] = targets.map(target => lane(target, work, 'as-upstream'))
  const results = await interleave(session, lanes, closed(64), session.pick({
    quick: { rounds: 8, windowMs: 100, warmMs: 500 },
    full: { rounds: 12, windowMs: 250, warmMs: 1500, warmRequests: 12_000 },
  }))
  for (const target of targets) await verifyTarget(target, work, lanes)
  await session.stop()
  return results
}

function row (results: Results, name: string, server: string, measure: string, atMost: number): Row {
  return {
    name,
    measure,
    value: ratio(results, cpuUs, [server], chain),
    reach: { atMost },
    aaSpread: twinSpread(results, cpuUs, 'chain', 'chain2'),
    quartiles: quartiles(results, cpuUs, [server], chain),
  }
}

function details (results: Results): Detail[] {
  return [...results.keys()].map(name => ({
    suite: 'state',
    target: name,
    'CPU us': level(results, cpuUs, name),
    'CPU vs chain': ratio(results, cpuUs, [name], chain),
    'req/s': level(results, perSecond, name),
  }))
}

export async function state (session: Session): Promise<Findings> {
  const redis = hasRedis ? await startRedis() : null
  try {
    const all: Results[] = []
    for (let at = 0; at < session.pick({ quick: 1, full: 2 }); at++) all.push(await generation(session, at, redis?.url ?? null))
    const results = joined(all)
    const rows = [row(
      results, 'default_vs_chain_cpu', 's', 'CPU per request as a user starts it (lmdb, ledger, log), over the chain', 1.25
    )]
    if (redis !== null) rows.push(row(results, 'redis_vs_chain_cpu', 's redis', 'the same with Redis', 1.6))
    return { rows, details: details(results) }
  } finally {
    await redis?.stop()
  }
}
