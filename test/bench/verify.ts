/** Holds the gateway's own metric totals against what its callers got. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lane } from './rounds.js'
import type { NodeTarget } from './target.js'
import type { Work } from './work.js'

export interface Expected {
  /** Requests answered 200 and metered. */
  readonly ok: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** Requests answered 401. */
  readonly refused?: number
}

/** Sum of a metric's samples whose label text contains all the parts given. */
export function total (exposition: string, metric: string, ...parts: readonly string[]): number {
  let sum = 0
  for (const line of exposition.split('\n')) {
    if (!line.startsWith(metric + '{') && !line.startsWith(metric + ' ')) continue
    if (parts.every(part => line.includes(part))) sum += Number(line.slice(line.lastIndexOf(' ') + 1))
  }
  return sum
}

function totals (exposition: string): Record<keyof Expected, number> {
  return {
    ok: total(exposition, 'llm_gateway_requests_total', 'outcome="ok"'),
    inputTokens: total(exposition, 'llm_gateway_tokens_total', 'direction="input"'),
    outputTokens: total(exposition, 'llm_gateway_tokens_total', 'direction="output"'),
    refused: total(exposition, 'llm_gateway_requests_total', 'outcome="auth_error"'),
  }
}

/** Every request of the lane that was answered is in the totals, with its tokens, and no other. */
export async function verifyLane (target: NodeTarget, { tokens }: Work, lane: Lane | undefined): Promise<void> {
  const ok = lane?.answered ?? 0
  await verifyTotals(target, { ok, inputTokens: ok * tokens.input, outputTokens: ok * tokens.output })
}

/** The same for all the lanes of one target, whose replies cost the same tokens. */
export async function verifyTarget (target: NodeTarget, { tokens }: Work, lanes: readonly Lane[]): Promise<void> {
  const ok = lanes.filter(each => each.target === target).reduce((sum, { answered }) => sum + answered, 0)
  await verifyTotals(target, { ok, inputTokens: ok * tokens.input, outputTokens: ok * tokens.output })
}

/** A request settles when its last byte is out, which may be a moment after its caller has it all. */
export async function verifyTotals (target: NodeTarget, expected: Expected): Promise<void> {
  const wanted = { refused: 0, ...expected }
  let seen = totals('')
  for (let attempt = 0; attempt < 40; attempt++) {
    seen = totals(String(await target.ask('metrics')))
    if (JSON.stringify(seen, Object.keys(seen)) === JSON.stringify(wanted, Object.keys(seen))) return
    await sleep(50)
  }
  throw new Error(`${target.name}: its metrics say ${JSON.stringify(seen)}, its callers ${JSON.stringify(wanted)}`)
}
