/** What a request is charged when it is over, and what the ledger keeps of it. */
import { leafTokens } from '../core/measures.js'
import type { ModelCall } from '../core/model-call.js'
import type { LedgerRecord, Scope } from '../state/types.js'
import { ledgerCost } from './bill.js'
import { relayedEstimate } from './estimate.js'

export interface Held {
  readonly tokens: number
  /** Estimated tokens of the request itself. */
  readonly input: number
  /** The work may go on when the request is over. */
  readonly goesOn: boolean
}

const maxModelLength = 128

const nothing = { input: 0, cache_read: 0, cache_write_5m: 0, cache_write_1h: 0, cache_write: 0, tool_input: 0, output: 0, reasoning: 0 }

/** It may have reached its upstream. */
function wasSent (llm: ModelCall): boolean {
  if (llm.errorCode === 'upstream_unreachable') return false
  return llm.times.sentAt > 0 || llm.upstreamStatus > 0 || llm.usageMissing !== null
}

/**
 * The real leaves wherever the reply told them. Where it broke off before, or told nothing, what it is known to have cost
 * at least: never nothing once it was sent, and never all that was held, unless the work goes on.
 */
export function chargeOf (llm: ModelCall, held: Held): number {
  if (!wasSent(llm) || llm.endpoint.metered === 'no') return 0
  const told = totalOf(llm)
  if (llm.usage !== null && !llm.usagePartial) return told
  if (llm.upstreamStatus >= 400 || (llm.usage === null && llm.endpoint.metered === 'optional')) return told
  // It would be free for whoever asks for the result later.
  if (held.goesOn) return Math.max(told, held.tokens)
  return Math.max(told, Math.min(held.tokens, held.input + relayedEstimate(llm)))
}

/** False for what is not metered, or never left. */
export function isRecorded (llm: ModelCall): boolean {
  return llm.endpoint.metered !== 'no' && wasSent(llm)
}

/** Null for what is not recorded. */
export function recordOf (llm: ModelCall, charged: number, late: readonly Scope[]): LedgerRecord | null {
  if (!isRecorded(llm)) return null
  return {
    time: Date.now(),
    id: llm.id,
    key: llm.key?.id ?? null,
    group: llm.group?.id ?? null,
    protocol: llm.protocol,
    // As in `tokens_total`. A caller may have made it up, at any length.
    model: (llm.model ?? llm.responseModel)?.slice(0, maxModelLength) ?? null,
    ...llm.sentModel !== null && { upstreamModel: llm.sentModel.slice(0, maxModelLength) },
    outcome: llm.outcome ?? 'ok',
    ...nothing,
    ...llm.usage,
    charged,
    late,
    ...ledgerCost(llm),
  }
}

function totalOf ({ usage }: ModelCall): number {
  let total = 0
  if (usage !== null) for (const tokens of leafTokens(usage)) total += tokens
  return total
}
