import { readLedger } from '../../plugins/state/ledger-read.js'
import type { LedgerRecord } from '../../plugins/state/types.js'
import { Refusal } from '../io.js'

/** The usage ledger of this host, record by record. Throws Refusal where there is none. */
export async function * ledgerRecords (path: string, range: Parameters<typeof readLedger>[1]): AsyncGenerator<LedgerRecord> {
  try {
    yield * readLedger(path, range)
  } catch (error) {
    if (Reflect.get(Object(error), 'code') !== 'ENOENT') throw error
    throw new Refusal(`there is no usage ledger at ${path}: no gateway with this configuration has run here`)
  }
}
