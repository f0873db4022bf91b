import { openUsageReader } from '../../plugins/state/usage-store/reader.js'
import type { UsageStoreConfig } from '../../plugins/state/types.js'
import { CommandError } from '../io.js'
import type { Source } from './source.js'

/** The usage of all hosts. Throws CommandError if the store cannot be asked. */
export async function storeSource (config: UsageStoreConfig): Promise<Source> {
  const reader = await openUsageReader(config).catch((error: unknown) => { throw explained(error) })
  return {
    records: reader.records,
    addTo: async (sums, by, calendar, question) => {
      const dimensions = by.map(({ name }) => name)
      for await (const rows of reader.sums(dimensions, calendar.zone, question)) {
        for (const { names, ...entry } of rows) sums.add(names, entry)
      }
    },
    close: reader.close,
  }
}

function explained (error: unknown): CommandError {
  return new CommandError(
    `the usage store cannot be asked: ${String(Object(error).message)}; --local reads the ledger of this host alone`
  )
}
