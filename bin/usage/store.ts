import { openUsageReader } from '../../plugins/state/usage-store/reader.js'
import type { UsageStoreConfig } from '../../plugins/state/types.js'
import { CommandError } from '../io.js'
import type { Source } from './source.js'

/** The usage of all hosts. Throws CommandError if the store cannot be asked. */
export async function storeSource (config: UsageStoreConfig): Promise<Source> {
  const reader = await openUsageReader(config).catch((error: unknown) => { throw explained(error) })
  return {
    records: (question) => answered(reader.records(question)),
    addTo: async (sums, by, calendar, question) => {
      const dimensions = by.map(({ name }) => name)
      for await (const rows of answered(reader.sums(dimensions, calendar.zone, question))) {
        for (const { names, ...entry } of rows) sums.add(names, entry)
      }
    },
    close: reader.close,
  }
}

async function * answered<Row> (rows: AsyncGenerator<Row>): AsyncGenerator<Row> {
  try {
    yield * rows
  } catch (error) {
    throw explained(error)
  }
}

/** SQLSTATE of a table that is not there. */
const noTable = '42P01'

function explained (error: unknown): CommandError {
  const { code, message } = Object(error)
  const why = code === noTable ? `${message}, as no gateway has connected to it yet` : String(message)
  return new CommandError(`the usage store cannot be asked: ${why}; --local reads the ledger of this host alone`)
}
