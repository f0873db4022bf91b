import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { PriceTable } from '../../plugins/costs/price-table.js'
import { ConfigError } from '../../plugins/standalone/config-error.js'
import { ledgerPath, loadConfig, stateConfig } from '../../plugins/standalone/config.js'
import type { LedgerRecord } from '../../plugins/state/types.js'
import { UsageError, type Io } from '../io.js'
import { ProgressBar } from '../progress-bar.js'
import { Calendar } from '../usage/calendar.js'
import { ledgerRecords } from '../usage/records.js'
import { repriced } from '../usage/reprice.js'
import { sumCsv, sumLines, sumTable } from '../usage/show.js'
import { readDimension, Sums, type Dimension } from '../usage/sums.js'

const filters = ['group', 'key', 'model', 'protocol', 'outcome'] as const

const filterOptions = { group: many(), key: many(), model: many(), protocol: many(), outcome: many() }

const options = {
  config: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  timezone: { type: 'string', default: 'UTC' },
  by: many(),
  json: { type: 'boolean', default: false },
  csv: { type: 'boolean', default: false },
  prices: many(),
  ...filterOptions,
} as const

function many () {
  return { type: 'string', multiple: true, default: new Array<string>() } as const
}

type Keeps = (record: LedgerRecord) => boolean

/** The usage ledger, record by record as JSON lines, or summed. Rotated files are read one after another and never held. */
export async function usage (file: string, args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
  const calendar = new Calendar(values.timezone)
  const by = values.by.flatMap((names) => names.split(',')).map(readDimension)
  if (values.csv && values.json) throw new UsageError('--csv and --json exclude each other')
  const config = loadConfig(file, io.env)
  const reprice = repricing(positionals, values.prices, config.prices?.currency)
  const isSummed = by.length > 0 || reprice !== null
  const range = { from: calendar.read('--from', values.from) ?? -Infinity, to: calendar.read('--to', values.to) ?? Infinity }
  if (stateConfig(config).engine === 'memory') throw new ConfigError([{ path: 'state.engine', message: 'is memory: its usage ends with the gateway' }])
  const sums = new Sums(by, calendar, reprice)
  await read(ledgerPath(config), range, filterOf(values), isSummed ? sums : null, io)
  if (isSummed) for (const line of shown(sums, by, values)) await io.out(line)
  return 0
}

/** Sums the records that are kept, or writes each where there are no sums. */
async function read (path: string, { from, to }: { from: number, to: number }, keeps: Keeps, sums: Sums | null, io: Io): Promise<void> {
  const bar = new ProgressBar(io.progress)
  const damaged = new Map<string, number>()
  const range = { from, to, onProgress: bar.update, onDamage: (name: string) => damaged.set(name, (damaged.get(name) ?? 0) + 1) }
  for await (const batch of ledgerRecords(path, range)) {
    for (const record of batch) {
      if (!keeps(record)) continue
      if (sums !== null) sums.add(record)
      else {
        bar.clear()
        await io.out(JSON.stringify(record))
      }
    }
  }
  bar.clear()
  for (const [name, lines] of damaged) io.err(`${name}: ${lines} lines are not whole and were left out`)
}

function shown (sums: Sums, by: readonly Dimension[], { csv, json }: { readonly csv: boolean, readonly json: boolean }): string[] {
  if (csv) return sumCsv(sums, by)
  return json ? sumLines(sums, by) : sumTable(sums, by)
}

/** `usage reprice --prices FILE`: what each record would have cost; null where that is not asked. Changes nothing. */
function repricing ([action, ...more]: readonly string[], files: readonly string[], currency: string | undefined): ConstructorParameters<typeof Sums>[2] {
  if (action === undefined && files.length === 0) return null
  if (action !== 'reprice' || more.length > 0) throw new UsageError('usage takes options, or reprice with --prices FILE')
  if (files.length === 0) throw new UsageError('usage reprice needs --prices FILE')
  const table = new PriceTable({ currency, files: files.map((name) => resolve(name)) })
  return (record) => repriced(table, record)
}

/** Each filter that is given must hold; given several times, any of its values will do. */
function filterOf (values: Readonly<Record<typeof filters[number], readonly string[]>>): Keeps {
  const given = filters.filter((name) => values[name].length > 0)
  return (record) => given.every((name) => values[name].includes(String(record[name])))
}
