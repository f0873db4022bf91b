import { readBatches } from '../../plugins/state/ledger-read.js'
import type { LedgerRecord } from '../../plugins/state/types.js'
import { CommandError } from '../io.js'

/** The usage ledger of this host, some records at a time. Throws CommandError where there is none. */
export async function * ledgerRecords (path: string, range: Parameters<typeof readBatches>[1]): AsyncGenerator<LedgerRecord[]> {
  try {
    yield * readBatches(path, range)
  } catch (error) {
    if (Reflect.get(Object(error), 'code') !== 'ENOENT') throw error
    throw new CommandError(`there is no usage ledger at ${path}: no gateway with this configuration has run here`)
  }
}
