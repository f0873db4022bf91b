/**
 * What prices and budgets cost: the small work of the chain, as it is, with prices and a budget in money, and with a label in the metrics
 * besides. All in one process: between two processes of one program lies more than between these.
 */
import { Callers } from '../load/generators.js'
import type { Detail, Findings, Row } from '../report.js'
import { generations, closed, lane, type Lane, type Scene } from '../rounds.js'
import type { Session } from '../session.js'
import type { NodeTarget, Target } from '../target.js'
import { total, verifyTotals } from '../verify.js'
import { level, perSecond, quartiles, ratio, twinSpread, type Results } from '../windows.js'

const plain = ['without', 'without again']
const priced = 'prices and a budget'
const names = [...plain, priced, 'and a label'] as const

async function scene (session: Session): Promise<Scene> {
  const work = session.work('bench-small')
  const target = await session.start('costs')
  const lanes: Lane[] = portsOf(await target.ask('measure')).map((port, at) => lane(behind(target, port), work, 'as-upstream', names[at]))
  const verify = async (): Promise<void> => {
    const ok = lanes.reduce((sum, { answered }) => sum + answered, 0)
    await verifyTotals(target, { ok, inputTokens: ok * work.tokens.input, outputTokens: ok * work.tokens.output })
    await verifyCosts(target)
    for (const { target: { callers } } of lanes) callers.close()
  }
  return { lanes, verify }
}

function portsOf (value: unknown): number[] {
  if (Array.isArray(value) && value.length === names.length) return value.map(Number)
  throw new Error('the target did not tell its ports')
}

/** One of the gateways of a process. */
function behind (target: NodeTarget, port: number): Target {
  return {
    name: target.name,
    callers: new Callers({ host: '127.0.0.1', port }),
    usage: async () => await target.usage(),
    stop: async () => {},
    end: () => target.end(),
  }
}

/** Nothing is measured where nothing had a price. */
async function verifyCosts (target: NodeTarget): Promise<void> {
  const metrics = String(await target.ask('metrics'))
  const all = total(metrics, 'llm_gateway_cost_total')
  const labelled = total(metrics, 'llm_gateway_cost_total', 'team="bench"')
  if (labelled > 0 && labelled < all && total(metrics, 'llm_gateway_unpriced_requests_total') === 0) return
  throw new Error(`${target.name}: its requests had no price`)
}

function row (results: Results): Row {
  return {
    name: 'costs_vs_plain_rps',
    measure: 'requests/s with prices and a budget in money, over without, in one process',
    value: ratio(results, perSecond, [priced], plain),
    reach: { atLeast: 0.98 },
    aaSpread: twinSpread(results, perSecond, 'without', 'without again'),
    quartiles: quartiles(results, perSecond, [priced], plain),
  }
}

function details (results: Results): Detail[] {
  return [...results.keys()].map(name => ({
    suite: 'costs',
    target: name,
    'req/s': level(results, perSecond, name),
    'req/s vs without': ratio(results, perSecond, [name], plain),
  }))
}

export async function costs (session: Session): Promise<Findings> {
  const results = await generations(session, 2, () => scene(session), closed(64), session.pick({
    quick: { rounds: 8, windowMs: 100, warmMs: 500 },
    full: { rounds: 48, windowMs: 250, warmMs: 1500, warmRequests: 16_000 },
  }))
  return { rows: [row(results)], details: details(results) }
}
