/**
 * The text of a scrape: https://prometheus.io/docs/instrumenting/exposition_formats/ and, on request, OpenMetrics 1.0. Bounds are written
 * as prom-client writes them (`le="1"`), in both formats, so that a series keeps its name whichever format a server asks for.
 */
import { setImmediate } from 'node:timers/promises'
import type { HistogramCell, ValueCell } from './families.js'
import type { Family } from './store.js'

interface TextFormat {
  readonly contentType: string
  /** The name in HELP and TYPE lines: OpenMetrics names a counter without the `_total` of its samples. */
  readonly familyName: (family: Family) => string
  readonly end: string
}

export const plainText: TextFormat = {
  contentType: 'text/plain; version=0.0.4; charset=utf-8',
  familyName: ({ name }) => name,
  end: '',
}

export const openMetrics: TextFormat = {
  contentType: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  familyName: ({ name }) => name.replace(/_total$/, ''),
  end: '# EOF\n',
}

/** Lines written before other work of the process gets its turn; about a millisecond. */
const linesPerTurn = 1_000

/** Writes every family. Yields between blocks of lines, so that open streams do not stall during a large scrape. */
export async function renderText (families: readonly Family[], format: TextFormat): Promise<string> {
  const parts: string[] = []
  let lines = 0
  for (const family of families) {
    const name = format.familyName(family)
    parts.push(`# HELP ${name} ${family.row.help}\n# TYPE ${name} ${family.row.type}\n`)
    // The same text in every cell of a family.
    const bounds = [...family.row.buckets, Infinity].map((upTo) => `,le="${boundText(upTo)}"} `)
    for (const cell of family.read()) {
      parts.push('buckets' in cell ? histogramLines(family.name, cell, bounds) : valueLine(family.name, cell))
      lines += 'buckets' in cell ? cell.buckets.length + 2 : 1
      if (lines < linesPerTurn) continue
      lines = 0
      await setImmediate()
    }
  }
  parts.push(format.end)
  return parts.join('')
}

function valueLine (name: string, { text, value }: ValueCell): string {
  return text === '' ? `${name} ${value}\n` : `${name}{${text}} ${value}\n`
}

function histogramLines (name: string, { text, buckets, sum, count }: HistogramCell, bounds: readonly string[]): string {
  const head = `${name}_bucket{${text}`
  let lines = ''
  let reached = 0
  let index = 0
  for (const { count: fell } of buckets) {
    reached += fell
    lines += head + bounds[index] + reached + '\n'
    index += 1
  }
  return `${lines}${name}_sum{${text}} ${sum}\n${name}_count{${text}} ${count}\n`
}

export function boundText (upTo: number): string {
  return upTo === Infinity ? '+Inf' : String(upTo)
}
