/** The metrics in memory. An update is a walk over a few Maps and one addition: tens of nanoseconds. */
import { combine, type CatalogueRow, type LabelValues } from './catalogue.js'
import { LabelTree, type Series } from './label-tree.js'

export interface ValueCell extends Series {
  value: number
}

export interface Bucket {
  readonly upTo: number
  count: number
}

export interface HistogramCell extends Series {
  /** Not cumulative: each counts only the values in its own range; the last one has all above the last finite bound. */
  readonly buckets: readonly Bucket[]
  sum: number
  count: number
}

export type Cell = ValueCell | HistogramCell

export type CellListener = ((cell: Cell) => void) | null

/** Where and how a family's cells are kept. */
export interface FamilyRules {
  readonly row: CatalogueRow
  readonly maxCells: number
  readonly overflowed: (label: string) => void
  /** Called with each cell of a counter or histogram that was changed. */
  readonly counted: CellListener
}

type Labels = readonly string[]

/** Only such numbers change a cell: a counter that met NaN once would be NaN for ever. */
export function isAmount (value: number): boolean {
  return value >= 0 && value <= Number.MAX_SAFE_INTEGER
}

/** Called with each amount that is counted, or each value that is observed, and the labels of its cell. */
export type ValueListener = (value: number, labels: Readonly<Record<string, string>>) => void

export class Counter<L extends Labels> {
  readonly #tree: LabelTree<ValueCell>
  readonly #counted: CellListener
  #listener: ValueListener | null = null

  constructor ({ row, maxCells, overflowed, counted }: FamilyRules) {
    this.#tree = new LabelTree(row.labels, maxCells, newValueCell, overflowed)
    this.#counted = counted
  }

  /** Adds a cell at 0, even beyond the maximum number of cells. False if it existed. */
  expect (values: readonly string[]): boolean {
    return this.#tree.reserve(values)
  }

  add (amount: number, ...values: LabelValues<L>): void {
    this.#add(amount, values)
  }

  /** For a counter that has the labels of keys after its own. `labels`: their values, in an array that is the same for many requests. */
  addFor (labels: readonly string[], amount: number, ...values: LabelValues<L>): void {
    this.#add(amount, values, labels)
  }

  #add (amount: number, values: readonly string[], labels?: readonly string[]): void {
    if (!isAmount(amount)) return
    const cell = this.#tree.find(values, labels)
    cell.value += amount
    if (this.#counted !== null) this.#counted(cell)
    if (this.#listener !== null && amount > 0) this.#listener(amount, cell.labels)
  }

  listen (listener: ValueListener): void {
    this.#listener = listener
  }

  read (): readonly ValueCell[] {
    return this.#tree.cells
  }
}

/** Reports the current values; called each time the gauge is read. `of`: as in a `GaugeSample`. */
type GaugeSource = (set: (value: number, labels: Readonly<Record<string, string>>, of?: object) => void) => void

/** Maximum number of label sets that are remembered as `other`. */
const maxOthers = 100_000

export class Gauge<L extends Labels> {
  readonly #tree: LabelTree<ValueCell>
  readonly #row: CatalogueRow
  readonly #sources = new Set<GaugeSource>()
  /** Label sets beyond `maxCells`. */
  readonly #others = new Set<string>()

  constructor ({ row, maxCells, overflowed }: FamilyRules) {
    this.#row = row
    // A source reports the same label sets at each reading: each counts as one overflow, however often it is read.
    this.#tree = new LabelTree(row.labels, maxCells, newValueCell, (label, values) => {
      const other = JSON.stringify(values)
      if (this.#others.has(other)) return
      overflowed(label)
      if (this.#others.size === maxOthers) this.#others.clear()
      this.#others.add(other)
    })
  }

  /** Counts up or down. Not for a gauge with sources. */
  move (by: 1 | -1, ...values: LabelValues<L>): void {
    this.#tree.find(values).value += by
  }

  /**
   * From now on the gauge has the values that its sources report when it is read. If two report the same labels, or share the cell for all
   * others, their values are combined as those of two processes are. Returns a function that removes the source.
   */
  follow (source: GaugeSource): () => void {
    this.#sources.add(source)
    return () => {
      this.#sources.delete(source)
      this.#tree.clear()
    }
  }

  read (): readonly ValueCell[] {
    if (this.#sources.size > 0) this.#refresh()
    return this.#tree.cells
  }

  #refresh (): void {
    this.#tree.clear()
    const seen = new Set<object>()
    for (const source of this.#sources) {
      source((value, labels, of = {}) => {
        if (!isAmount(value) || seen.has(of)) return
        const cell = this.#tree.find(this.#row.labels.map((name) => String(labels[name])))
        cell.value = seen.has(cell) ? combine[this.#row.aggregator](cell.value, value) : value
        seen.add(cell).add(of)
      })
    }
  }
}

export class Histogram<L extends Labels> {
  readonly #tree: LabelTree<HistogramCell>
  readonly #counted: CellListener
  #listener: ValueListener | null = null

  constructor ({ row, maxCells, overflowed, counted }: FamilyRules) {
    this.#counted = counted
    const bounds = [...row.buckets, Infinity]
    this.#tree = new LabelTree(row.labels, maxCells, (series) => newHistogramCell(series, bounds), overflowed)
  }

  observe (value: number, ...values: LabelValues<L>): void {
    if (!isAmount(value)) return
    const cell = this.#tree.find(values)
    cell.sum += value
    cell.count += 1
    for (const bucket of cell.buckets) {
      if (value > bucket.upTo) continue
      bucket.count += 1
      break
    }
    if (this.#counted !== null) this.#counted(cell)
    if (this.#listener !== null) this.#listener(value, cell.labels)
  }

  listen (listener: ValueListener): void {
    this.#listener = listener
  }

  read (): readonly HistogramCell[] {
    return this.#tree.cells
  }
}

function newValueCell (series: Series): ValueCell {
  return { ...series, value: 0 }
}

function newHistogramCell (series: Series, bounds: readonly number[]): HistogramCell {
  return { ...series, buckets: bounds.map((upTo) => ({ upTo, count: 0 })), sum: 0, count: 0 }
}
