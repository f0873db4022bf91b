import type { FastifyBaseLogger } from 'fastify'
import type { Ledger, Shipping } from '../core/money/ledger.js'
import type { Recorder } from '../core/recorder.js'
import { writeLog } from '../core/write-log.js'

/** Tells operators of usage records that the disk or the usage store does not take. Returns what ends it. */
export function watchLedger (ledger: Ledger, recorder: Recorder, log: FastifyBaseLogger): Array<() => void> {
  const stopWrites = ledger.onTrouble?.((err, again) => {
    recorder.ledgerFailed()
    if (again) return
    writeLog(log, 'error', { err }, 'usage records cannot be written: they wait in memory, and their tokens are not charged yet')
  })
  return [() => stopWrites?.(), ...ledger.shipping ? watchShipping(ledger.shipping, recorder, log) : []]
}

function watchShipping (shipping: Shipping, recorder: Recorder, log: FastifyBaseLogger): Array<() => void> {
  return [
    recorder.gauge('ledger_unshipped_records', () => [{ labels: {}, value: shipping.unshipped }]),
    recorder.gauge('ledger_lag_seconds', () => [{ labels: {}, value: shipping.lagMs / 1_000 }]),
    shipping.onTrouble((err, again) => {
      if (again) return
      writeLog(log, 'error', { err }, 'the usage store failed or refused: what it lacks is in the files of the ledger, or in refused.jsonl')
    }),
  ]
}
