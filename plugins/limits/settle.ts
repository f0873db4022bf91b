import type { FastifyRequest } from 'fastify'
import type { ModelCall } from '../core/model-call.js'
import type { Ledger } from '../state/types.js'
import type { Admission } from './admission.js'
import { chargeOf, recordOf } from './charge.js'

const nothingHeld = { tokens: 0, input: 0, goesOn: false }

/**
 * Once per request, at its end. The record comes first: what a crash takes from the balances is put right from the ledger,
 * never the other way round. The reply has left by then, and nobody waits for either.
 */
export function settleRequest (admission: Admission, ledger: Ledger | null, llm: ModelCall, request: FastifyRequest): void {
  const ticket = admission.ticketOf(llm)
  if (ticket === undefined && ledger === null) return
  const charged = chargeOf(llm, ticket ?? nothingHeld)
  const record = ledger === null ? null : recordOf(llm, charged, ticket === undefined ? [] : admission.late(ticket))
  if (record === null || ledger === null) {
    if (ticket !== undefined) admission.settle(ticket, charged)
    return
  }
  if (ticket !== undefined) admission.leave(ticket)
  const settle = (): void => {
    if (ticket !== undefined) admission.settle(ticket, charged)
  }
  ledger.append(record).then(settle, (error: unknown) => {
    request.log.error({ err: error, record }, 'a usage record could not be kept')
    settle()
  })
}
