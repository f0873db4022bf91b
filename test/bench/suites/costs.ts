/** What prices cost: the small work of the chain, as it is and with prices, a label in the metrics, and a budget in money. */
import type { Detail, Findings, Row } from '../report.js'
import { closed, interleave, inTurn, joined, lane, type Lane } from '../rounds.js'
import type { Session } from '../session.js'
import type { NodeTarget } from '../target.js'
import { total, verifyTarget } from '../verify.js'
import { cpuUs, level, perSecond, quartiles, ratio, twinSpread, type Results } from '../windows.js'

const chain = ['chain', 'chain2']

async function generation (session: Session, at: number): Promise<Results> {
  const work = session.work('bench-small')
  const priced = [await session.start('costs'), await session.start('money budget', 'costs', { env: { BENCH_MONEY: '1' } })]
  const targets = [await session.start('chain'), ...priced, await session.start('chain2', 'chain')]
  const lanes: Lane[] = targets.map(target => lane(target, work, 'as-upstream'))
  const results = await interleave(session, inTurn(at, lanes), closed(64), session.pick({
    quick: { rounds: 8, windowMs: 100, warmMs: 500 },
    full: { rounds: 8, windowMs: 250, warmMs: 1500, warmRequests: 12_000 },
  }))
  for (const target of targets) await verifyTarget(target, work, lanes)
  for (const target of priced) await verifyCosts(target)
  await session.stop()
  return results
}

/** Nothing is measured where nothing had a price. */
async function verifyCosts (target: NodeTarget): Promise<void> {
  const metrics = String(await target.ask('metrics'))
  if (total(metrics, 'llm_gateway_cost_total', 'team="bench"') > 0 && total(metrics, 'llm_gateway_unpriced_requests_total') === 0) return
  throw new Error(`${target.name}: its requests had no price`)
}

function row (results: Results): Row {
  return {
    name: 'costs_vs_plain_rps',
    measure: 'requests/s with prices and a label in the metrics, over without',
    value: ratio(results, perSecond, ['costs'], chain),
    reach: { atLeast: 0.98 },
    aaSpread: twinSpread(results, perSecond, 'chain', 'chain2'),
    quartiles: quartiles(results, perSecond, ['costs'], chain),
  }
}

function details (results: Results): Detail[] {
  return [...results.keys()].map(name => ({
    suite: 'costs',
    target: name,
    'CPU us': level(results, cpuUs, name),
    'CPU vs chain': ratio(results, cpuUs, [name], chain),
    'req/s': level(results, perSecond, name),
    'req/s vs chain': ratio(results, perSecond, [name], chain),
  }))
}

export async function costs (session: Session): Promise<Findings> {
  const all: Results[] = []
  for (let at = 0; at < session.pick({ quick: 2, full: 4 }); at++) all.push(await generation(session, at))
  const results = joined(all)
  return { rows: [row(results)], details: details(results) }
}
