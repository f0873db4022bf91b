import { PriceTable, rowAt } from '../../plugins/costs/price-table.js'
import { didYouMean } from '../../plugins/core/config/did-you-mean.js'
import type { GatewayConfig } from '../../plugins/standalone/config-types.js'
import { loadConfig } from '../../plugins/standalone/config.js'
import { configOption, readArgs } from '../args.js'
import { CommandError, UsageError, type Io } from '../io.js'
import { Calendar } from '../sums/calendar.js'
import { readRange, type Question } from '../sums/wanted.js'
import { ledgerOptions, openSource } from '../usage/open-source.js'
import { repriced } from '../usage/reprice.js'
import type { Source } from '../usage/source.js'

type Action = (file: string, args: string[], io: Io) => Promise<number>

const nothing = { group: [], key: [], model: [], protocol: [], outcome: [] }

const actions = new Map(Object.entries<Action>({ show, check }))

/** Shows what the configuration's price lists contain. */
export async function prices (file: string, [name = '', ...args]: string[], io: Io): Promise<number> {
  const action = actions.get(name)
  if (action === undefined) throw new UsageError(`prices takes ${[...actions.keys()].join(' or ')}${didYouMean(name, [...actions.keys()])}`)
  return await action(file, args, io)
}

/** Throws CommandError if the configuration has no price lists. */
function tableOf (config: GatewayConfig, file: string): PriceTable {
  if (config.prices === undefined) throw new CommandError(`${file} names no prices`)
  return new PriceTable(config.prices)
}

/** Prints the entry of a model as it was written, after a line that says which one it is. */
async function show (file: string, args: string[], io: Io): Promise<number> {
  const { positionals: [model, ...more] } = readArgs({ args, options: configOption, allowPositionals: true })
  if (model === undefined || more.length > 0) throw new UsageError('prices show takes one model')
  const table = tableOf(loadConfig(file, io.env), file)
  const entry = table.entry(model)
  if (entry === null) throw new CommandError(`${model} has no price: no entry has its name, its name without a date, or a glob that fits`)
  const row = rowAt(entry.rows, Date.now())
  io.err(
    `${model} has the entry ${entry.key} of ${entry.place}, by its ${entry.how}${row === null ? ', and none of its rows holds now' : ''}`
  )
  for (const each of entry.rows) {
    const { source } = each
    io.out(JSON.stringify({
      model, entry: entry.key, place: entry.place, currency: table.currency, price: table.digest(each), now: each === row, row: source,
    }))
  }
  return 0
}

/**
 * Lists models of the ledger that have no price, or lack a part of it, with the number of such requests. Requests without anything to
 * charge are left out: a caller who misspells a name gets an error, and the name is no model.
 */
async function check (file: string, args: string[], io: Io): Promise<number> {
  const { values } = readArgs({ args, options: ledgerOptions })
  const range = readRange(new Calendar(values.timezone), values)
  const config = loadConfig(file, io.env)
  const table = tableOf(config, file)
  const source = await openSource(config, values.local, io)
  const missing = await unpricedOf(source, { ...range, wanted: nothing }, table).finally(source.close)
  for (const [model, requests] of [...missing].sort(([a], [b]) => a.localeCompare(b))) await io.out(JSON.stringify({ model, requests }))
  if (missing.size === 0) io.err('every request of the ledger has a price')
  return missing.size === 0 ? 0 : 1
}

/** Requests by model. */
async function unpricedOf (source: Source, question: Question, table: PriceTable): Promise<Map<string, number>> {
  const missing = new Map<string, number>()
  for await (const batch of source.records(question)) {
    for (const record of batch) {
      const model = String(record.model)
      if (repriced(table, record)?.unpriced === true) missing.set(model, (missing.get(model) ?? 0) + 1)
    }
  }
  return missing
}
