/**
 * What a second worker brings: as many requests again where there are cores for it, and where callers need them too, at the same cost each.
 */
import { cpus } from 'node:os'
import type { Findings } from '../report.js'
import { closed, interleave, lane } from '../rounds.js'
import type { Session } from '../session.js'
import { verifyTarget } from '../verify.js'
import { cpuUs, level, perSecond, quartiles, ratio, twinSpread, type Results } from '../windows.js'

const one = ['1 worker', '1 worker again']
const two = ['2 workers']
/** For two workers, their callers and the upstream. */
const hasCores = cpus().length >= 4

async function generation (session: Session): Promise<Results> {
  const work = session.work('bench-small')
  const targets = []
  for (const name of [...one, ...two]) {
    targets.push(await session.start(name, 's-workers', { env: { BENCH_SIZE: name.slice(0, 1) }, anywhere: true }))
  }
  const lanes = targets.map(target => lane(target, work, 'as-upstream'))
  // Callers and upstream that poll would take the workers' cores, where there are no others.
  const results = await interleave(session, lanes, closed(64, hasCores), session.pick({
    quick: { rounds: 8, windowMs: 150, warmMs: 1_000 },
    // Each of two workers has half of the requests to warm it.
    full: { rounds: 12, windowMs: 300, warmMs: 2_000, warmRequests: 24_000 },
  }))
  for (const target of targets) await verifyTarget(target, work, lanes)
  await session.stop()
  return results
}

export async function workers (session: Session): Promise<Findings> {
  const results = await generation(session)
  const [read, measure, reach] = hasCores
    ? [perSecond, 'requests/s, two workers over one', { atLeast: 1.8 }] as const
    : [cpuUs, `CPU per request, two workers over one: callers need a part of the ${cpus().length} cores`, { atMost: 1.1 }] as const
  const [first = '', second = ''] = one
  return {
    rows: [{
      name: 'workers2_vs_1_rps',
      measure,
      value: ratio(results, read, two, one),
      reach,
      aaSpread: twinSpread(results, read, first, second),
      quartiles: quartiles(results, read, two, one),
    }],
    details: [...results.keys()].map(name => ({
      suite: 'workers', target: name, 'CPU us': level(results, cpuUs, name), 'req/s': level(results, perSecond, name),
    })),
  }
}
