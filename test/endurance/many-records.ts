/** Reports of a ledger with many records: exact, soon, and in memory that does not grow with them. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decimalText } from '../../plugins/core/money/decimal.js'
import { FileLedger } from '../../plugins/state/ledger/file-ledger.js'
import type { LedgerRecord } from '../../plugins/state/index.js'
import { cleanly, program } from '../helpers/launch.js'
import { temporaryFolder, type Report } from './processes.js'

export interface ManyRecords {
  readonly records: number
  readonly maxMs: number
  /** How much more memory all of the records may take than a tenth of them. */
  readonly maxGrowthMb: number
}

const groups = 20
const models = 50
const teams = 7
/** Nine in ten records have a cost: of so many units of a hundred millionth. */
const costPlaces = 8
const reports = ['group', 'model,day', 'label:team'] as const
/** Tells the most memory that the program had, where it ends. */
const preload = 'data:text/javascript,process.on("exit",()=>process.stderr.write("peak "+process.resourceUsage().maxRSS))'

export async function manyRecords ({ records, maxMs, maxGrowthMb }: ManyRecords): Promise<Report> {
  const [some, all] = [await reportsOf(Math.ceil(records / 10)), await reportsOf(records)]
  const growthMb = Math.max(...reports.map((by) => all.peakMb[by] - some.peakMb[by]))
  const slow = reports.filter((by) => all.ms[by] > maxMs).map((by) => `usage --by ${by} took ${all.ms[by]} ms`)
  const violations = [...some.violations, ...all.violations]
  if (growthMb > maxGrowthMb) violations.push(`ten times the records took ${growthMb} MB more`)
  return { violations, slow, records, ms: all.ms, peakMb: all.peakMb, growthMb }
}

type ByReport = Record<typeof reports[number], number>

async function reportsOf (records: number): Promise<{ violations: string[], ms: ByReport, peakMb: ByReport }> {
  const folder = temporaryFolder()
  const file = join(folder.path, 'gateway.yaml')
  writeFileSync(file, JSON.stringify({
    upstreams: { main: { url: 'http://127.0.0.1:9', credential: 'none' } },
    groups: { g: { protocols: ['messages'] } },
    state: { engine: 'lmdb', path: './data' },
  }))
  const ledger = new FileLedger(join(folder.path, 'data', 'ledger'))
  for (let i = 0; i < records; i += 1) {
    const kept = ledger.append(recordAt(i))
    if (i % 10_000 === 0) await kept
  }
  await ledger.close()
  const violations: string[] = []
  const [ms, peakMb] = [{ ...none }, { ...none }]
  for (const by of reports) {
    const startedAt = performance.now()
    const { stdout, stderr, status } = spawnSync(
      ...cleanly(process.execPath, ['--import', preload, program, 'usage', '--config', file, '--by', by, '--json']),
      { encoding: 'utf8', cwd: folder.path }
    )
    ms[by] = Math.round(performance.now() - startedAt)
    peakMb[by] = Math.round(Number(/peak (\d+)$/.exec(stderr)?.[1]) / 1024)
    const found = totals(stdout.split('\n').filter(Boolean).map((line): Line => JSON.parse(line)))
    const wanted = expected(records)
    if (status !== 0 || found !== wanted) violations.push(`--by ${by} of ${records}: ${found} where ${wanted} were written ${stderr}`)
  }
  folder.remove()
  return { violations, ms, peakMb }
}

const none: ByReport = { group: 0, 'model,day': 0, 'label:team': 0 }

const costUnits = (i: number): number => i % 10 === 0 ? 0 : 1 + i % 99_991

function recordAt (i: number): LedgerRecord {
  const units = costUnits(i)
  return {
    id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    time: Date.UTC(2026, 0, 1) + i * 2_000,
    key: `key-${i % 500}`,
    group: `group-${i % groups}`,
    protocol: 'messages',
    model: `model-${i % models}`,
    outcome: 'ok',
    input: i % 1_000,
    cache_read: i % 300,
    cache_write_5m: 0,
    cache_write_1h: 0,
    cache_write: 0,
    tool_input: 0,
    output: i % 77,
    reasoning: 0,
    charged: i % 1_000 + i % 300 + i % 77,
    late: [],
    cost: units === 0 ? null : decimalText({ units: BigInt(units), places: costPlaces }),
    currency: 'USD',
    labels: { team: `team-${i % teams}` },
  }
}

interface Line {
  readonly requests: number
  readonly total: number
  readonly charged: number
  readonly cost: Readonly<Record<string, string>>
}

/** Requests, tokens, charges and costs of all lines. */
function totals (lines: readonly Line[]): string {
  const of = (read: (line: Line) => number): number => lines.reduce((sum, line) => sum + read(line), 0)
  const units = lines.reduce((sum, { cost }) => sum + unitsOf(cost['USD'] ?? '0'), 0n)
  return [of(({ requests }) => requests), of(({ total }) => total), of(({ charged }) => charged), units].join(' ')
}

function expected (records: number): string {
  let [tokens, units] = [0, 0n]
  for (let i = 0; i < records; i += 1) {
    tokens += i % 1_000 + i % 300 + i % 77
    units += BigInt(costUnits(i))
  }
  return [records, tokens, tokens, units].join(' ')
}

function unitsOf (cost: string): bigint {
  const [whole = '', fraction = ''] = cost.split('.')
  return BigInt(whole + fraction.padEnd(costPlaces, '0'))
}
