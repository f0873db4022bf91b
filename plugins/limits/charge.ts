/** What a request is charged when it is over, and what the ledger keeps of it. */
import type { Pricing } from '../core/money/pricing.js'
import { totalTokens } from '../core/call/measures.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Amounts, OwnedBucket, Scope } from '../core/balances/types.js'
import type { LedgerRecord } from '../core/money/ledger.js'
import { addCost, billOf, maxModelLength, type Writable } from './bill.js'
import { relayedEstimate } from './estimate.js'

export interface Held {
  readonly tokens: number
  /** Estimated tokens of the request itself. */
  readonly input: number
  /** The work may go on when the request is over. */
  readonly goesOn: boolean
}

interface HeldWithCost extends Held {
  readonly cost: number
}

const nothing = { input: 0, cache_read: 0, cache_write_5m: 0, cache_write_1h: 0, cache_write: 0, tool_input: 0, output: 0, reasoning: 0 }

/** It may have reached its upstream. One that replied was reached, whatever a hook of the host's failed with after it. */
function wasSent ({ upstreamReply, errorCode, times, usage }: ModelCall): boolean {
  return upstreamReply.status > 0 || (errorCode !== 'upstream_unreachable' && (times.sentAt > 0 || usage.missing !== null))
}

/**
 * What is known at its end of what it used: nothing was, all of it, a part, or a part and the rest is not seen: the work goes on, or the
 * reply was packed so tightly that nobody unpacked it, as a caller has it who sends a megabyte of blanks that the reply repeats.
 */
type Known = 'nothing' | 'all' | 'a part' | 'unseen'

function knownOf (llm: ModelCall, { goesOn }: Held): Known {
  if (!wasSent(llm) || llm.endpoint.metered === 'no') return 'nothing'
  if (llm.usage.tokens !== null && !llm.usage.partial) return 'all'
  if (llm.upstreamReply.status >= 400 || toldNothing(llm)) return 'all'
  return goesOn || llm.usage.missing === 'too_large' ? 'unseen' : 'a part'
}

/** A whole reply that need not tell its usage, and did not. One that its caller left would be had so, but for its last byte. */
function toldNothing ({ endpoint, usage, abortedBy }: ModelCall): boolean {
  return endpoint.metered === 'optional' && usage.tokens === null && abortedBy === null
}

/**
 * The real leaves wherever the reply told them. Where it broke off before, or told nothing, what it is known to have cost
 * at least: never nothing once it was sent, and never all that was held, unless the rest is not seen.
 */
export function chargeOf (llm: ModelCall, held: Held, known: Known = knownOf(llm, held)): number {
  if (known === 'nothing') return 0
  const reported = totalOf(llm)
  if (known === 'all') return reported
  // It would be free for whoever has it so.
  if (known === 'unseen') return Math.max(reported, held.tokens)
  return Math.max(reported, Math.min(held.tokens, held.input + relayedEstimate(llm)))
}

/**
 * The same in billionths of the currency: what the reply cost, and where it broke off what its parts may have. So too where tokens have
 * no price, unless that is allowed: how a request is served may be its caller's choice, and would make it free.
 */
function costChargeOf (llm: ModelCall, held: HeldWithCost, known: Known, pricing: Pricing | null): number {
  if (known === 'nothing') return 0
  const reported = llm.cost?.billionths ?? 0
  const isPriced = llm.cost?.unpriced !== true || pricing?.unpriced === 'allow'
  if (isPriced && (known === 'all' || toldPictures(llm))) return reported
  if (known === 'unseen') return Math.max(reported, held.cost)
  const isTold = known === 'all' && totalOf(llm) > 0
  const likely = isTold ? pricing?.atMost(llm) : pricing?.estimate(llm, held.input, relayedEstimate(llm))
  return Math.max(reported, Math.min(held.cost, likely ?? held.cost))
}

/** A whole reply that tells its pictures by the piece and no tokens: what they cost is all of it. */
function toldPictures ({ usage, cost, abortedBy }: ModelCall): boolean {
  return usage.tokens === null && Number(usage.served?.counts.image) > 0 && cost !== null && abortedBy === null && !usage.replyFailed
}

export function chargesOf (llm: ModelCall, held: HeldWithCost, pricing: Pricing | null): Amounts {
  const known = knownOf(llm, held)
  return { tokens: chargeOf(llm, held, known), cost: costChargeOf(llm, held, known, pricing) }
}

/** False for what is not metered, or never left. */
export function isRecorded (llm: ModelCall): boolean {
  return llm.endpoint.metered !== 'no' && wasSent(llm)
}

/** Null for what is not recorded. */
export function recordOf (
  llm: ModelCall, { tokens, cost }: Amounts, late: readonly Scope[], lateBuckets: readonly OwnedBucket[] = []
): LedgerRecord | null {
  if (!isRecorded(llm)) return null
  const usage = llm.usage.tokens ?? nothing
  const record: Writable<LedgerRecord> = {
    time: Date.now(),
    id: llm.id,
    key: llm.auth.key?.id ?? null,
    group: llm.auth.group?.id ?? null,
    protocol: llm.protocol,
    // As in `tokens_total`.
    model: (llm.model ?? llm.usage.responseModel)?.slice(0, maxModelLength) ?? null,
    outcome: llm.outcome ?? 'ok',
    // Written out, and added to where something applies: V8 takes five times as long to put an object together from several.
    input: usage.input,
    cache_read: usage.cache_read,
    cache_write_5m: usage.cache_write_5m,
    cache_write_1h: usage.cache_write_1h,
    cache_write: usage.cache_write,
    tool_input: usage.tool_input,
    output: usage.output,
    reasoning: usage.reasoning,
    charged: tokens,
    late,
    bill: billOf(llm),
  }
  addCost(record, llm)
  if (llm.routing.sentModel !== null) record.upstreamModel = llm.routing.sentModel.slice(0, maxModelLength)
  if (lateBuckets.length > 0) record.lateBuckets = lateBuckets
  if (cost !== 0) record.chargedCost = cost
  return record
}

function totalOf ({ usage: { tokens: usage } }: ModelCall): number {
  return usage === null ? 0 : totalTokens(usage)
}
