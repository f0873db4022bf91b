import { resolve } from 'node:path'
import { PriceTable } from '../../plugins/costs/price-table.js'
import { loadConfig } from '../../plugins/standalone/config.js'
import type { LedgerRecord } from '../../plugins/state/types.js'
import { readArgs } from '../args.js'
import { UsageError, type Io } from '../io.js'
import { Calendar } from '../sums/calendar.js'
import { readDimension, type Dimension } from '../sums/dimensions.js'
import { Sums, type RecordCost } from '../sums/sums.js'
import { checkWanted, readRange, type Question } from '../sums/wanted.js'
import { ledgerOptions, openSource } from '../usage/open-source.js'
import { entryOf, repriced } from '../usage/reprice.js'
import { sumCsv, sumLines, sumTable } from '../usage/show.js'
import type { Source } from '../usage/source.js'

const filterOptions = { group: many(), key: many(), model: many(), protocol: many(), outcome: many() }

const options = {
  ...ledgerOptions,
  by: many(),
  json: { type: 'boolean', default: false },
  csv: { type: 'boolean', default: false },
  prices: many(),
  ...filterOptions,
} as const

function many () {
  return { type: 'string', multiple: true, default: new Array<string>() } as const
}

/** The usage of this host's ledger or of the usage store, record by record as JSON lines, or summed. */
export async function usage (file: string, args: string[], io: Io): Promise<number> {
  const { values, positionals } = readArgs({ args, options, allowPositionals: true })
  const calendar = new Calendar(values.timezone)
  const by = [...new Set(values.by.flatMap((names) => names.split(',')))].map(readDimension)
  if (values.csv && values.json) throw new UsageError('--csv and --json exclude each other')
  checkWanted(values)
  const question = { ...readRange(calendar, values), wanted: values }
  const config = loadConfig(file, io.env)
  const reprice = repricing(positionals, values.prices, config.prices?.currency)
  const sums = new Sums(reprice !== null)
  const isSummed = by.length > 0 || reprice !== null
  if (values.csv && !isSummed) throw new UsageError('--csv is of sums: say --by, too')
  const source = await openSource(config, values.local, io)
  try {
    if (reprice !== null) await addRepriced(source, question, { sums, by, calendar, reprice })
    else if (isSummed) await source.addTo(sums, by, calendar, question)
    else await showRecords(source, question, io)
  } finally {
    await source.close()
  }
  if (isSummed) for (const line of shown(sums, by, values)) await io.out(line)
  return 0
}

async function showRecords (source: Source, question: Question, io: Io): Promise<void> {
  let isEmpty = true
  for await (const batch of source.records(question)) {
    for (const record of batch) {
      isEmpty = false
      await io.out(JSON.stringify(record))
    }
  }
  if (isEmpty) io.err('the ledger has no record, or none that matches')
}

interface Repricing {
  readonly sums: Sums
  readonly by: readonly Dimension[]
  readonly calendar: Calendar
  readonly reprice: (record: LedgerRecord) => RecordCost | null
}

async function addRepriced (source: Source, question: Question, { sums, by, calendar, reprice }: Repricing): Promise<void> {
  for await (const batch of source.records(question)) {
    for (const record of batch) sums.add(by.map(({ read }) => read(record, calendar)), entryOf(record), reprice(record))
  }
}

function shown (sums: Sums, by: readonly Dimension[], { csv, json }: { readonly csv: boolean, readonly json: boolean }): string[] {
  if (csv) return sumCsv(sums, by)
  return json ? sumLines(sums, by) : sumTable(sums, by)
}

/** `usage reprice --prices FILE`: what each record would have cost; null for plain `usage`. Changes nothing. */
function repricing (
  [action, ...more]: readonly string[], files: readonly string[], currency: string | undefined
): Repricing['reprice'] | null {
  if (action === undefined && files.length === 0) return null
  if (action !== 'reprice' || more.length > 0) throw new UsageError('usage takes options, or reprice with --prices FILE')
  if (files.length === 0) throw new UsageError('usage reprice needs --prices FILE')
  const table = new PriceTable({ currency, files: files.map((name) => resolve(name)) })
  return (record) => repriced(table, record)
}
