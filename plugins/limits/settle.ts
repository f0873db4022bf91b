import type { FastifyBaseLogger } from 'fastify'
import type { Pricing } from '../core/money/pricing.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Ledger, LedgerRecord } from '../core/money/ledger.js'
import { writeLog } from '../core/write-log.js'
import type { Admission } from './admission.js'
import { readBucketId } from './budgets.js'
import { chargesOf, isRecorded, recordOf } from './charge.js'
import type { Later, Made } from './later.js'
import type { Outbox } from './outbox.js'
import { owesNothing, ticketOf } from './ticket.js'

const nothingHeld = { tokens: 0, input: 0, cost: 0 }

/** What the end of a request needs. */
export interface SettlementParts {
  readonly admission: Admission
  readonly ledger: Ledger | null
  readonly pricing: () => Pricing | null
  readonly later: Later
  readonly outbox: Outbox
}

/**
 * Once per request, at its end: frees its place. Charges what it used only if no record of it is kept. Otherwise the record is written
 * first and charged after that (`keepRecord`), so that after a crash the balances can be corrected from the ledger.
 */
export function settleLimits (parts: SettlementParts, llm: ModelCall, log: FastifyBaseLogger): void {
  const { admission, ledger, pricing, later } = parts
  const made = later.madeOf(llm)
  if (made !== undefined) settleTold(parts, made, llm, log)
  const ticket = ticketOf(llm)
  if (ledger !== null && isRecorded(llm)) {
    if (ticket !== undefined) admission.leave(ticket)
    return
  }
  if (ticket === undefined && !llm.body.goesOn) return
  const charged = chargesOf(llm, ticket ?? nothingHeld, pricing())
  const parties = ticket?.parties ?? null
  later.keep(llm, charged, parties, ticket === undefined ? undefined : admission.settle(ticket, charged))
}

/**
 * Replaces what was charged for a response in the background by what it used: its maker is charged the difference. Budgets in a currency
 * that a reload has replaced since stay charged what it held.
 */
function settleTold ({ ledger, pricing, outbox }: SettlementParts, made: Made, llm: ModelCall, log: FastifyBaseLogger): void {
  const { id, key, labels, charged, late, lateBuckets, lateBalances } = made
  const used = chargesOf(llm, { ...charged, input: 0 }, pricing(), 'all')
  const currency = pricing()?.currency
  const isOther = lateBuckets?.some(({ unit, id: bucket }) => unit === 'cost' && readBucketId(bucket).currency !== currency)
  const more = { tokens: used.tokens - charged.tokens, cost: isOther === true ? 0 : used.cost - charged.cost }
  const group = String(llm.auth.group?.id)
  const settle = (): void | Promise<void> => {
    if (late.length > 0) return outbox.send({ id, group, key, ...more, late, lateBuckets, lateBalances })
  }
  if (ledger === null) settle()
  else write(ledger, { ...recordOf(llm, more, made), id, key, ...labels && { labels } }, settle, log)
}

/**
 * The next step, if there is a ledger: writes the record, then charges what it says, written or not. The reply has left by then; nobody
 * waits for either.
 */
export function keepRecord (
  { admission, pricing, later }: SettlementParts, ledger: Ledger, llm: ModelCall, log: FastifyBaseLogger
): void {
  const ticket = ticketOf(llm)
  ticket?.letGo()
  if (!isRecorded(llm)) return
  const charged = chargesOf(llm, ticket ?? nothingHeld, pricing())
  const record = recordOf(llm, charged, ticket?.owed ?? owesNothing)
  const settled = write(ledger, record, () => { if (ticket !== undefined) return admission.settle(ticket, charged) }, log)
  later.keep(llm, charged, ticket?.parties ?? null, settled)
}

function write (ledger: Ledger, record: LedgerRecord, settle: () => void | Promise<void>, log: FastifyBaseLogger): Promise<void> {
  return append(ledger, record).then(settle, (error: unknown) => {
    const settled = settle()
    writeLog(log, 'error', { err: error, record }, 'a usage record could not be kept')
    return settled
  })
}

/** A ledger of the host's may throw instead of returning a promise that rejects. */
function append (ledger: Ledger, record: LedgerRecord): Promise<void> {
  try {
    return Promise.resolve(ledger.append(record))
  } catch (error) {
    return Promise.reject(error)
  }
}
