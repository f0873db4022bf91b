/** A 1 KB chat request and a 700-byte reply, 64 callers: throughput and cost of every target. */
import { closed, cpuUs, interleave, lane, p50Ms, p99Ms, perSecond, type Lane, type Results } from '../rounds.js'
import { pairSpread, type Detail, type Findings, type Row } from '../report.js'
import type { Session } from '../session.js'
import { verifyTotals } from '../verify.js'

const callers = 64

export async function small (session: Session): Promise<Findings> {
  const work = session.work('bench-small')
  const bare = [await session.start('c2'), await session.start('d'), await session.start('e')]
  const twins = [await session.start('e2', 'e'), await session.start('d2', 'd')]
  const ours = [await session.start('chain'), await session.start('dropin')]
  const nginx = await session.nginx()
  const lanes: Lane[] = [
    ...bare.map(target => lane(target, work, 'as-caller')),
    ...ours.map(target => lane(target, work, 'as-upstream')),
    ...nginx.map(target => lane(target, work, 'as-caller')),
    ...twins.map(target => lane(target, work, 'as-caller')),
    ...session.others().map(target => lane(target, work, 'unknown')),
  ]
  const plan = session.pick({
    quick: { rounds: 3, windowMs: 400, warmMs: 800 },
    full: { rounds: 12, windowMs: 1000, warmMs: 3000 },
  })
  const results = await interleave(session, lanes, closed(callers), plan)
  for (const target of ours) {
    const ok = lanes.find(each => each.target === target)?.answered ?? 0
    await verifyTotals(target, { ok, inputTokens: ok * work.tokens.input, outputTokens: ok * work.tokens.output })
  }
  await session.stop()
  return { rows: rows(results), details: details(lanes, results) }
}

function rows (results: Results): Row[] {
  const rate = (...names: string[]): number => perSecond(results, ...names)
  const cpu = (...names: string[]): number => cpuUs(results, ...names)
  const rateOfE = pairSpread(rate, 'e', 'e2')
  const rateOfD = pairSpread(rate, 'd', 'd2')
  return [
    { name: 'chain_vs_e_rps', measure: 'requests/s, whole chain over raw-Buffer reply.from', value: rate('chain') / rate('e', 'e2'), reach: { atLeast: 0.95 }, aaSpread: rateOfE },
    { name: 'chain_vs_d_rps', measure: 'requests/s, whole chain over bare http-proxy', value: rate('chain') / rate('d', 'd2'), reach: { atLeast: 1.6 }, aaSpread: rateOfD },
    { name: 'dropin_vs_d_rps', measure: 'requests/s, dropped into an http-proxy mount over the bare mount', value: rate('dropin') / rate('d', 'd2'), reach: { atLeast: 1.2 }, aaSpread: rateOfD },
    { name: 'chain_over_e_cpu', measure: 'CPU per request beyond e, as a share of e', value: cpu('chain') / cpu('e', 'e2') - 1, reach: { atMost: 0.08 }, aaSpread: pairSpread(cpu, 'e', 'e2') },
  ]
}

function details (lanes: readonly Lane[], results: Results): Detail[] {
  const base = cpuUs(results, 'd', 'd2')
  const rate = perSecond(results, 'd', 'd2')
  return lanes.map(({ name }) => ({
    suite: 'small',
    target: name,
    'CPU us': cpuUs(results, name),
    'CPU vs d': cpuUs(results, name) / base,
    'req/s': perSecond(results, name),
    'req/s vs d': perSecond(results, name) / rate,
    'p50 ms': p50Ms(results, name),
    'p99 ms': p99Ms(results, name),
  }))
}
