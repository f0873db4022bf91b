import type { HistogramReading, MetricFamily, ValueReading } from '../core/recorder.js'

/** The page uses the names of the metrics without their prefix. */
export const prefix = 'llm_gateway_'

export type Sums = Record<string, number>
export type Row = ReadonlyArray<string | number>

/** Reads metrics by name and sums their cells for the page. */
export class Readings {
  readonly #families: () => readonly MetricFamily[]

  /** Called at each reading: the metrics may be registered later. */
  constructor (families: () => readonly MetricFamily[]) {
    this.#families = families
  }

  values (name: string): readonly ValueReading[] {
    return this.#read(name).filter((cell) => 'value' in cell)
  }

  histograms (name: string): readonly HistogramReading[] {
    return this.#read(name).filter((cell) => 'buckets' in cell)
  }

  /** Sums a metric by the values of some labels; these come first in each row, the sum last. */
  rows (name: string, ...labels: readonly string[]): Row[] {
    const rows = new Map<string, { values: string[], sum: number }>()
    for (const cell of this.values(name)) {
      const values = labels.map((label) => String(cell.labels[label]))
      // No label value has a control character: the metrics escape them.
      const key = values.join('\n')
      const row = rows.get(key) ?? { values, sum: 0 }
      row.sum += cell.value
      rows.set(key, row)
    }
    return [...rows.values()].map(({ values, sum }) => [...values, sum])
  }

  /** Sums a metric by the values of one label. */
  sums (name: string, label: string): Sums {
    return Object.fromEntries(this.rows(name, label))
  }

  /** The sum of all series of a metric. */
  total (name: string): number {
    return this.values(name).reduce((sum, { value }) => sum + value, 0)
  }

  /** Counts per bucket, all series together; empty if there is none yet. */
  buckets (name: string): readonly number[] {
    const sums: number[] = []
    for (const { buckets } of this.histograms(name)) {
      for (const [index, { count }] of buckets.entries()) sums[index] = (sums[index] ?? 0) + count
    }
    return sums
  }

  #read (name: string): ReadonlyArray<ValueReading | HistogramReading> {
    return this.#families().find((family) => family.name === prefix + name)?.read() ?? []
  }
}
