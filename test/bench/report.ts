/** Rows of the report, the table on the terminal, and the JSON file. */
import { describeMachine } from './machine.js'
import type { Mode } from './session.js'
import type { Quartiles } from './windows.js'
import { maxSpread, verdict, type Reach, type Verdict } from './stats.js'

export interface Row {
  /** The name in the JSON file. */
  readonly name: string
  readonly measure: string
  readonly value: number
  readonly reach: Reach
  /** Distance of the baseline from its own twin in the same run. */
  readonly aaSpread: number
  /** The middle half of the blocks, where the value is a median over blocks. */
  readonly quartiles?: Quartiles
  readonly note?: string
}

/** What was measured of one target, for reading beside the ratios. */
export interface Detail {
  readonly suite: string
  readonly target: string
  readonly [column: string]: string | number
}

export interface Findings {
  readonly rows: readonly Row[]
  readonly details: readonly Detail[]
}

export function verdictOf (row: Row): Verdict {
  return verdict(row.value, row.reach, row.aaSpread)
}

function digits (value: number): string {
  if (!Number.isFinite(value)) return '-'
  return Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(3)
}

function reachText (reach: Reach): string {
  return 'atLeast' in reach ? `>= ${reach.atLeast}` : `<= ${reach.atMost}`
}

/** Columns as wide as their widest cell; the first is text, the others numbers. */
export function table (head: readonly string[], body: ReadonlyArray<readonly string[]>): string {
  const widths = head.map((cell, at) => Math.max(cell.length, ...body.map(line => line[at]?.length ?? 0)))
  const line = (cells: readonly string[]): string => cells
    .map((cell, at) => at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)).join('  ').trimEnd()
  return [line(head), widths.map(width => '-'.repeat(width)).join('  '), ...body.map(line)].join('\n')
}

export function detailTable (details: readonly Detail[]): string {
  const columns = [...new Set(details.flatMap(Object.keys))].filter(column => column !== 'suite')
  return table(columns, details.map(detail => columns.map(column => {
    const cell = detail[column] ?? ''
    return typeof cell === 'number' ? digits(cell) : cell
  })))
}

export function rowTable (rows: readonly Row[]): string {
  return table(['measure', 'name', 'value', 'half of the blocks', 'goal', 'A/A', ''], rows.map(row => [
    row.measure + (row.note === undefined ? '' : ` (${row.note})`), row.name, digits(row.value),
    row.quartiles === undefined ? '' : row.quartiles.map(digits).join('..'),
    reachText(row.reach),
    `${(row.aaSpread * 100).toFixed(1)} %`,
    verdictOf(row),
  ]))
}

/** The values under their names, and how the run went under `run`. */
export function asJson (mode: Mode, seconds: number, { rows, details }: Findings): Record<string, unknown> {
  const round = (value: number): number => Number(value.toPrecision(4))
  return {
    ...Object.fromEntries(rows.map(row => [row.name, round(row.value)])),
    run: {
      mode,
      seconds: Math.round(seconds),
      machine: describeMachine(),
      maxSpread,
      spreads: Object.fromEntries(rows.map(row => [row.name, round(row.aaSpread)])),
      verdicts: Object.fromEntries(rows.map(row => [row.name, verdictOf(row)])),
      unresolved: rows.filter(row => verdictOf(row) === 'unresolved').map(row => row.name),
      details,
    },
  }
}
