/** What a request is charged when it is over, and what the ledger keeps of it. */
import type { Pricing } from '../core/money/pricing.js'
import { tokensOf, totalTokens, usageBy } from '../core/call/measures.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Amounts } from '../core/balances/types.js'
import type { LedgerRecord } from '../core/money/ledger.js'
import { addCost, billOf, maxModelLength, type Writable } from './bill.js'
import { relayedEstimate } from './estimate.js'
import type { Owed } from './ticket.js'

interface Held extends Amounts {
  /** Estimated tokens of the request itself. */
  readonly input: number
}

const nothing = usageBy(() => 0)

/** True if it may have reached its upstream. It has if there was a reply, even if a hook of the host's failed after that. */
function wasSent ({ upstreamReply, errorCode, times, usage }: ModelCall): boolean {
  return upstreamReply.status > 0 || (errorCode !== 'upstream_unreachable' && (times.sentAt > 0 || usage.missing !== null))
}

/**
 * What is known of its usage at its end. `unseen`: a part is known, and the rest cannot be: the work continues in the background, or the
 * reply was compressed too tightly to be read. A caller can cause that, with a megabyte of blanks that the reply repeats.
 */
type Known = 'nothing' | 'all' | 'a part' | 'unseen'

function knownOf (llm: ModelCall): Known {
  if (!wasSent(llm) || llm.endpoint.metered === 'no') return 'nothing'
  if (llm.usage.tokens !== null && !llm.usage.partial) return 'all'
  if (llm.upstreamReply.status >= 400 || toldNothing(llm)) return 'all'
  return llm.body.goesOn || llm.usage.missing === 'too_large' ? 'unseen' : 'a part'
}

/** A whole reply that need not report usage, and did not. Not if the caller left: it could have all but the last byte for free. */
function toldNothing ({ endpoint, usage, abortedBy }: ModelCall): boolean {
  return endpoint.metered === 'optional' && usage.tokens === null && abortedBy === null
}

/**
 * Tokens to charge: the real leaves if the reply reported them. If it broke off before, or reported nothing, a lower bound of what it
 * used: never nothing once it was sent, and all that was held only if the rest is `unseen`.
 */
function tokenChargeOf (llm: ModelCall, held: Held, known: Known): number {
  if (known === 'nothing') return 0
  const reported = totalOf(llm)
  if (known === 'all') return reported
  // Otherwise a caller could make it free.
  if (known === 'unseen') return Math.max(reported, held.tokens)
  return Math.max(reported, Math.min(held.tokens, inputOf(llm, held) + relayedEstimate(llm)))
}

/**
 * The same in billionths of the currency: what the reply cost, or an estimate if it broke off. Also an estimate if tokens have no price,
 * unless `unpriced: allow`: the caller may choose how a request is served, and could make it free.
 */
function costChargeOf (llm: ModelCall, held: Held, known: Known, pricing: Pricing | null): number {
  if (known === 'nothing') return 0
  const reported = llm.cost?.billionths ?? 0
  const isPriced = llm.cost?.unpriced !== true || pricing?.unpriced === 'allow'
  if (isPriced && (known === 'all' || toldPictures(llm))) return reported
  if (known === 'unseen') return Math.max(reported, held.cost)
  const isTold = known === 'all' && totalOf(llm) > 0
  const likely = isTold ? pricing?.atMost(llm) : pricing?.estimate(llm, inputOf(llm, held), relayedEstimate(llm))
  return Math.max(reported, Math.min(held.cost, likely ?? held.cost))
}

/** A stream may begin with the tokens of its request: more than was held must not hide what came after. */
function inputOf ({ usage: { tokens } }: ModelCall, held: Held): number {
  return Math.max(held.input, tokens === null ? 0 : tokensOf(tokens, 'input'))
}

/** A whole reply that reports pictures by number and no tokens: their price is its whole cost. */
function toldPictures ({ usage, cost, abortedBy }: ModelCall): boolean {
  return usage.tokens === null && Number(usage.served?.counts.image) > 0 && cost !== null && abortedBy === null && !usage.replyFailed
}

export function chargesOf (llm: ModelCall, held: Held, pricing: Pricing | null, known: Known = knownOf(llm)): Amounts {
  return { tokens: tokenChargeOf(llm, held, known), cost: costChargeOf(llm, held, known, pricing) }
}

/** What it used will be told by another request; no reply here tells that of a chat which its provider answers elsewhere. */
export function isToldLater (llm: ModelCall): boolean {
  return llm.body.goesOn && llm.endpoint.usage?.unfinished.length !== 0 && llm.usage.tokens === null && knownOf(llm) === 'unseen'
}

/** False for what is not metered, or was never sent. */
export function isRecorded (llm: ModelCall): boolean {
  return llm.endpoint.metered !== 'no' && wasSent(llm)
}

export function recordOf (llm: ModelCall, { tokens, cost }: Amounts, { late, lateBuckets = [], lateBalances }: Owed): LedgerRecord {
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
  if (lateBalances !== undefined) record.lateBalances = lateBalances
  if (cost !== 0) record.chargedCost = cost
  return record
}

function totalOf ({ usage: { tokens: usage, served } }: ModelCall): number {
  const beside = served?.tools?.model === undefined ? 0 : totalTokens(served.tools.usage)
  return usage === null ? 0 : totalTokens(usage) + beside
}
