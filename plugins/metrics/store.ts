/** All families of one recorder, in the order of the catalogue: what the projections read. */
import { createRequire } from 'node:module'
import {
  catalogue, prefix, type CatalogueRow, type LabelsOf, type MetricName, type NameOf,
} from './catalogue.js'
import {
  Counter, Gauge, Histogram, type Cell, type FamilyRules, type HistogramCell, type Told, type ValueCell, type ValueListener,
} from './families.js'
import { knownFromStart } from './from-zero.js'
import { TokenCounter } from './token-counter.js'

interface FamilyOf<C> {
  /** With its prefix. */
  readonly name: string
  readonly row: CatalogueRow
  /** The cells as they are now. A gauge with sources asks them. */
  readonly read: () => readonly C[]
}

export type ValueFamily = FamilyOf<ValueCell>

export interface HistogramFamily extends FamilyOf<HistogramCell> {
  /** Tells `listener` each value as it comes in; a histogram's cells cannot be read back into values. */
  readonly listen: (listener: ValueListener) => void
}

export type Family = ValueFamily | HistogramFamily

/** Told each cell of a counter or histogram that was counted in, and of which metric it is. */
export type CountListener = (name: string, cell: Cell) => void

/** Labels whose values come from outside; all others are closed words of ours. */
const openLabels = ['model', 'group', 'upstream']

export interface StoreRules {
  /** The most series (for a histogram: label sets) that one metric may have. */
  readonly maxCells: number
  /** Labels of keys that some metrics have behind their own. */
  readonly labels: readonly string[]
  readonly counted?: CountListener | null | undefined
}

export class MetricStore {
  readonly families: Family[] = []
  readonly #maxCells: number
  readonly #labels: readonly string[]
  readonly #counted: CountListener | null
  readonly #overflow: Counter<LabelsOf<'label_overflow_total'>>

  constructor ({ maxCells, labels, counted = null }: StoreRules) {
    this.#maxCells = maxCells
    this.#labels = labels
    this.#counted = counted
    // Its labels are the catalogue's own; a cap here would count its own overflow for ever.
    const rules = {
      row: catalogue.label_overflow_total,
      maxCells: Infinity,
      overflowed: this.overflowed,
      counted: this.#countedIn('label_overflow_total'),
    }
    this.#overflow = this.#join('label_overflow_total', new Counter(rules))
    // There before the first one: a rate sees no rise in a counter that begins at 1.
    for (const label of [...openLabels, ...labels]) this.#overflow.add(0, label)
  }

  /** A label value was replaced by `other`. */
  readonly overflowed = (label: string): void => this.#overflow.add(1, label)

  counter<N extends NameOf<'counter'>> (name: N): Counter<LabelsOf<N>> {
    const counter = new Counter<LabelsOf<N>>(this.#rules(name))
    for (const values of knownFromStart(name)) counter.expect(values)
    return this.#join(name, counter)
  }

  /** A counter that has the labels of keys, too: see `addFor`. */
  labelled<N extends NameOf<'counter'>> (name: N): Counter<LabelsOf<N>> {
    const rules = this.#labelledRules(name)
    return this.#join(name, new Counter<LabelsOf<N>>(rules), rules.row)
  }

  /** Has the labels of keys, too. */
  tokens (): TokenCounter {
    const rules = this.#labelledRules('tokens_total')
    return this.#join('tokens_total', new TokenCounter(rules), rules.row)
  }

  gauge<N extends NameOf<'gauge'>> (name: N): Gauge<LabelsOf<N>> {
    return this.#join(name, new Gauge<LabelsOf<N>>(this.#rules(name)))
  }

  histogram<N extends NameOf<'histogram'>> (name: N): Histogram<LabelsOf<N>> {
    const histogram = new Histogram<LabelsOf<N>>(this.#rules(name))
    this.families.push({ ...named(name), read: () => histogram.read(), listen: (listener) => histogram.listen(listener) })
    return histogram
  }

  /** The gauges that this store knows by itself. */
  describeItself (): void {
    this.gauge('build_info').follow((set) => set(1, { version: packageVersion }))
    this.gauge('series').follow((set) => set(this.#countSeries(), {}))
  }

  #rules (name: MetricName): FamilyRules {
    return { row: catalogue[name], maxCells: this.#maxCells, overflowed: this.overflowed, counted: this.#countedIn(name) }
  }

  #labelledRules (name: MetricName): FamilyRules {
    const rules = this.#rules(name)
    return { ...rules, row: { ...rules.row, labels: [...rules.row.labels, ...this.#labels] } }
  }

  #countedIn (name: MetricName): Told {
    const counted = this.#counted
    return counted === null ? null : (cell) => counted(prefix + name, cell)
  }

  #join<F extends Pick<ValueFamily, 'read'>> (name: MetricName, family: F, row: CatalogueRow = catalogue[name]): F {
    this.families.push({ ...named(name), row, read: () => family.read() })
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

const manifest: unknown = createRequire(import.meta.url)('fastify-llm-gateway/package.json')

export const packageVersion = String(Reflect.get(Object(manifest), 'version'))
