/** All families of one recorder: what the projections read. */
import {
  catalogue, prefix, type CatalogueRow, type LabelsOf, type MetricName, type NameOf,
} from './catalogue.js'
import {
  Counter, Gauge, Histogram, type Cell, type FamilyRules, type HistogramCell, type ValueCell, type ValueListener,
} from './families.js'
import { packageVersion } from '../core/version.js'
import { knownFromStart } from './from-zero.js'
import { TokenCounter } from './token-counter.js'

interface FamilyOf<C> {
  /** Including the prefix. */
  readonly name: string
  readonly row: CatalogueRow
  /** The current cells. A gauge with sources asks them. */
  readonly read: () => readonly C[]
}

export type ValueFamily = FamilyOf<ValueCell>

interface Heard {
  /** Calls `listener` with each value as it comes in. */
  readonly listen: (listener: ValueListener) => void
}

export type CounterFamily = ValueFamily & Heard
export type HistogramFamily = FamilyOf<HistogramCell> & Heard
export type Family = ValueFamily | CounterFamily | HistogramFamily

/** Called with each cell of a counter or histogram that was changed, and the name of its metric. */
export type CountListener = (name: string, cell: Cell) => void

/** Labels whose values come from outside; all others have fixed values. */
const openLabels = ['model', 'group', 'upstream']

interface StoreRules {
  /** Maximum number of series (for a histogram: label sets) of one metric. */
  readonly maxCells: number
  /** Labels of keys that some metrics have after their own. */
  readonly labels: readonly string[]
  readonly counted: CountListener | null
}

export class MetricStore {
  readonly families: Family[] = []
  readonly #maxCells: number
  readonly #labels: readonly string[]
  readonly #counted: CountListener | null
  readonly #overflow: Counter<LabelsOf<'label_overflow_total'>>

  constructor ({ maxCells, labels, counted }: StoreRules) {
    this.#maxCells = maxCells
    this.#labels = labels
    this.#counted = counted
    // Its labels are the catalogue's own; with a maximum, it would count its own overflow for ever.
    this.#overflow = this.#join('label_overflow_total', new Counter({ ...this.#rules('label_overflow_total'), maxCells: Infinity }))
    // Starts at 0: a rate sees no rise in a counter that begins at 1.
    for (const label of [...openLabels, ...labels]) this.#overflow.add(0, label)
  }

  /** Called when a label value was replaced by `other`. */
  readonly overflowed = (label: string): void => this.#overflow.add(1, label)

  counter<N extends NameOf<'counter'>> (name: N): Counter<LabelsOf<N>> {
    const counter = new Counter<LabelsOf<N>>(this.#rules(name))
    for (const values of knownFromStart(name)) counter.expect(values)
    return this.#join(name, counter)
  }

  /** A counter that also has the labels of keys: see `addFor`. */
  labelled<N extends NameOf<'counter'>> (name: N): Counter<LabelsOf<N>> {
    const rules = this.#labelledRules(name)
    return this.#join(name, new Counter<LabelsOf<N>>(rules), rules.row)
  }

  /** Also has the labels of keys. */
  tokens (): TokenCounter {
    const rules = this.#labelledRules('tokens_total')
    return this.#join('tokens_total', new TokenCounter(rules), rules.row)
  }

  gauge<N extends NameOf<'gauge'>> (name: N): Gauge<LabelsOf<N>> {
    const gauge = new Gauge<LabelsOf<N>>(this.#rules(name))
    this.families.push({ ...named(name), read: () => gauge.read() })
    return gauge
  }

  histogram<N extends NameOf<'histogram'>> (name: N): Histogram<LabelsOf<N>> {
    const histogram = new Histogram<LabelsOf<N>>(this.#rules(name))
    this.families.push({ ...named(name), read: () => histogram.read(), listen: (listener) => histogram.listen(listener) })
    return histogram
  }

  /** The gauges whose values this store knows itself. */
  describeItself (): void {
    this.gauge('build_info').follow((set) => set(1, { version: packageVersion }))
    this.gauge('series').follow((set) => set(this.#countSeries(), {}))
  }

  #rules (name: MetricName): FamilyRules {
    const counted = this.#counted
    return {
      row: catalogue[name],
      maxCells: this.#maxCells,
      overflowed: this.overflowed,
      counted: counted === null ? null : (cell) => counted(prefix + name, cell),
    }
  }

  #labelledRules (name: MetricName): FamilyRules {
    const rules = this.#rules(name)
    return { ...rules, row: { ...rules.row, labels: [...rules.row.labels, ...this.#labels] } }
  }

  #join<F extends Pick<CounterFamily, 'read' | 'listen'>> (name: MetricName, family: F, row: CatalogueRow = catalogue[name]): F {
    this.families.push({ ...named(name), row, read: () => family.read(), listen: (listener) => family.listen(listener) })
    return family
  }

  #countSeries (): number {
    let count = 1
    for (const { row, read } of this.families.filter(({ name }) => name !== `${prefix}series`)) {
      count += read().length * (row.type === 'histogram' ? row.buckets.length + 3 : 1)
    }
    return count
  }
}

function named (name: MetricName): Pick<Family, 'name' | 'row'> {
  return { name: `${prefix}${name}`, row: catalogue[name] }
}
