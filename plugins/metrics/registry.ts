/**
 * The cells as metrics of a prom-client registry: 15.x, its successor, or anything of that shape. The registry is the host's; nothing is
 * ever put into the global one.
 */
import { OptionError } from '../core/config/options.js'
import type { HistogramCell, ValueCell } from './families.js'
import { boundText } from './exposition.js'
import type { Family } from './store.js'

interface MetricValue {
  readonly value: number
  readonly labels: Record<string, string>
  readonly metricName?: string
}

interface MetricValues {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly aggregator: string
  readonly values: MetricValue[]
}

/** What a registry needs of a metric. */
interface RegistryMetric {
  /** The current values. */
  get (): Promise<unknown>
}

/** The part of a prom-client `Registry` that is used. */
export interface MetricsRegistry {
  /** Media type of the text. */
  readonly contentType: string
  /** The text of all its metrics. */
  metrics (): Promise<string>
  /** Adds one metric. */
  registerMetric (metric: RegistryMetric): void
  /** The metric of that name; undefined for none. */
  getSingleMetric (name: string): object | undefined
}

/**
 * Adds every family to the registry. A family that an earlier mount has added stays. A foreign metric of the same name is an
 * `LLM_GATEWAY_OPTION` error.
 */
export function joinRegistry (registry: MetricsRegistry, families: readonly Family[]): void {
  for (const family of families) {
    const present = registry.getSingleMetric(family.name)
    if (present === undefined) registry.registerMetric(new FamilyMetric(family))
    else if (!(present instanceof FamilyMetric)) throw new OptionError('metrics.registry', `already holds a metric named ${family.name}`)
  }
}

class FamilyMetric implements RegistryMetric {
  /** A registry that writes OpenMetrics removes the `_total` and reads the name back. */
  name: string
  readonly help: string
  readonly type: string
  readonly aggregator: string
  readonly #family: Family

  constructor (family: Family) {
    this.name = family.name
    this.help = family.row.help
    this.type = family.row.type
    this.aggregator = family.row.aggregator
    this.#family = family
  }

  async get (): Promise<MetricValues> {
    const { name, help, type, aggregator } = this
    return { name, help, type, aggregator, values: this.#family.read().flatMap((cell) => valuesOf(name, cell)) }
  }

  /** Called by `registry.resetMetrics()`. Counts are never reset: that would break the rates of other readers. */
  reset (): void {}
}

function valuesOf (name: string, cell: ValueCell | HistogramCell): MetricValue[] {
  if (!('buckets' in cell)) return [{ value: cell.value, labels: { ...cell.labels } }]
  let reached = 0
  const values = cell.buckets.map(({ upTo, count }): MetricValue => {
    reached += count
    return { value: reached, labels: { ...cell.labels, le: boundText(upTo) }, metricName: `${name}_bucket` }
  })
  values.push({ value: cell.sum, labels: { ...cell.labels }, metricName: `${name}_sum` })
  values.push({ value: cell.count, labels: { ...cell.labels }, metricName: `${name}_count` })
  return values
}
