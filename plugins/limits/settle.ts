import type { FastifyBaseLogger } from 'fastify'
import type { ModelCall } from '../core/model-call.js'
import type { Ledger, LedgerRecord } from '../state/types.js'
import { writeLog } from '../core/write-log.js'
import type { Admission } from './admission.js'
import { chargeOf, isRecorded, recordOf } from './charge.js'

const nothingHeld = { tokens: 0, input: 0, goesOn: false }

/**
 * Once per request, at its end: its place is free at once. What it used is charged now only where no record of it is kept: a
 * record comes before its charge, as what a crash takes from the balances is put right from the ledger, never the other way round.
 */
export function settleLimits (admission: Admission, keepsRecords: boolean, llm: ModelCall): void {
  const ticket = admission.ticketOf(llm)
  if (ticket === undefined) return
  if (keepsRecords && isRecorded(llm)) admission.leave(ticket)
  else admission.settle(ticket, chargeOf(llm, ticket))
}

/** After it, where there is a ledger: keeps the record, and charges what it says, kept or not. The reply has left by then, and nobody waits for either. */
export function keepRecord (admission: Admission, ledger: Ledger, llm: ModelCall, log: FastifyBaseLogger): void {
  const ticket = admission.takeTicket(llm)
  const charged = chargeOf(llm, ticket ?? nothingHeld)
  const record = recordOf(llm, charged, ticket === undefined ? [] : admission.late(ticket))
  if (record === null) return
  const settle = (): void => {
    if (ticket !== undefined) admission.settle(ticket, charged)
  }
  append(ledger, record).then(settle, (error: unknown) => {
    settle()
    writeLog(log, 'error', { err: error, record }, 'a usage record could not be kept')
  })
}

/** A ledger of the host's may throw in place of a promise that fails. */
async function append (ledger: Ledger, record: LedgerRecord): Promise<void> {
  await ledger.append(record)
}
