import type { FastifyBaseLogger } from 'fastify'
import { balancesOf } from '../core/balances/parties.js'
import type { Pricing } from '../core/money/pricing.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Ledger, LedgerRecord } from '../core/money/ledger.js'
import { writeLog } from '../core/write-log.js'
import type { Admission } from './admission.js'
import { chargesOf, isRecorded, recordOf } from './charge.js'

const nothingHeld = { tokens: 0, input: 0, cost: 0, goesOn: false }

/** What the end of a request needs. */
interface SettlementParts {
  readonly admission: Admission
  readonly ledger: Ledger | null
  readonly pricing: () => Pricing | null
}

/**
 * Once per request, at its end: frees its place. Charges what it used only if no record of it is kept. Otherwise the record is written
 * first and charged after that (`keepRecord`), so that after a crash the balances can be corrected from the ledger.
 */
export function settleLimits ({ admission, ledger, pricing }: SettlementParts, llm: ModelCall): void {
  const ticket = admission.ticketOf(llm)
  if (ticket === undefined) return
  if (ledger !== null && isRecorded(llm)) admission.leave(ticket)
  else admission.settle(ticket, chargesOf(llm, ticket, pricing()))
}

/**
 * The next step, if there is a ledger: writes the record, then charges what it says, written or not. The reply has left by then; nobody
 * waits for either.
 */
export function keepRecord ({ admission, pricing }: SettlementParts, ledger: Ledger, llm: ModelCall, log: FastifyBaseLogger): void {
  const ticket = admission.takeTicket(llm)
  const charged = chargesOf(llm, ticket ?? nothingHeld, pricing())
  const late = ticket?.late ?? []
  const plain = recordOf(llm, charged, late, ticket?.lateBuckets)
  if (plain === null) return
  const record = ticket === undefined || late.length === 0 ? plain : { ...plain, lateBalances: balancesOf(ticket.parties) }
  const settle = (): void => {
    if (ticket !== undefined) admission.settle(ticket, charged)
  }
  append(ledger, record).then(settle, (error: unknown) => {
    settle()
    writeLog(log, 'error', { err: error, record }, 'a usage record could not be kept')
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
