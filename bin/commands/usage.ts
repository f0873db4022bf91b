import { parseArgs } from 'node:util'
import { ConfigError } from '../../plugins/standalone/config-error.js'
import { ledgerPath, loadConfig, stateConfig } from '../../plugins/standalone/config.js'
import type { LedgerRecord } from '../../plugins/state/types.js'
import { readDate, UsageError, type Io } from '../io.js'
import { ProgressBar } from '../progress-bar.js'
import { ledgerRecords } from '../usage/records.js'
import { sumLines, sumTable } from '../usage/show.js'
import { dimensions, isDimension, Sums, type Dimension } from '../usage/sums.js'

const filters = ['group', 'key', 'model', 'protocol', 'outcome'] as const

const filterOptions = { group: many(), key: many(), model: many(), protocol: many(), outcome: many() }

const options = {
  config: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  by: many(),
  json: { type: 'boolean', default: false },
  ...filterOptions,
} as const

function many () {
  return { type: 'string', multiple: true, default: new Array<string>() } as const
}

type Keeps = (record: LedgerRecord) => boolean

/** The usage ledger, record by record as JSON lines, or summed. Rotated files are read one after another and never held. */
export async function usage (file: string, args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({ args, options })
  const from = readDate('--from', values.from) ?? -Infinity
  const to = readDate('--to', values.to) ?? Infinity
  const by = readDimensions(values.by)
  const config = loadConfig(file, io.env)
  if (stateConfig(config).engine === 'memory') throw new ConfigError([{ path: 'state.engine', message: 'is memory: its usage ends with the gateway' }])
  const keeps = filterOf(values)
  const bar = new ProgressBar(io.progress)
  const damaged = new Map<string, number>()
  const range = { from, to, onProgress: bar.update, onDamage: (name: string) => damaged.set(name, (damaged.get(name) ?? 0) + 1) }
  const sums = new Sums(by)
  for await (const record of ledgerRecords(ledgerPath(config), range)) {
    if (!keeps(record)) continue
    if (by.length > 0) sums.add(record)
    else {
      bar.clear()
      await io.out(JSON.stringify(record))
    }
  }
  bar.clear()
  if (by.length > 0) for (const line of values.json ? sumLines(sums, by) : sumTable(sums, by)) await io.out(line)
  for (const [name, lines] of damaged) io.err(`${name}: ${lines} lines are not whole and were left out`)
  return 0
}

function readDimensions (given: readonly string[]): Dimension[] {
  return given.flatMap((names) => names.split(',')).map((name) => {
    if (!isDimension(name)) throw new UsageError(`--by must be ${dimensions.join(', ')}, or several of them`)
    return name
  })
}

/** Each filter that is given must hold; given several times, any of its values will do. */
function filterOf (values: Readonly<Record<typeof filters[number], readonly string[]>>): Keeps {
  const given = filters.filter((name) => values[name].length > 0)
  return (record) => given.every((name) => values[name].includes(String(record[name])))
}
