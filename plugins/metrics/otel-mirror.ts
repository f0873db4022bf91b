import type { Attributes, Meter, MeterProvider, MetricOptions, Observable, ObservableResult } from '@opentelemetry/api'
import { combine, prefix } from './catalogue.js'
import type { ValueListener } from './families.js'
import type { CounterFamily, Family, HistogramFamily, ValueFamily } from './store.js'

/**
 * The families behind each observable instrument, by name. Two apps of one process write to the same instruments, and an SDK keeps only one
 * of two values observed for the same attributes: so one callback adds them up.
 */
const observed = new WeakMap<MeterProvider, Map<string, ValueFamily[]>>()

type Write = (value: number, labels: Attributes) => void

/** The number of label sets that an SDK keeps apart by default, and its label for the sum of all others. */
const maxShown = 1_999
const rest = { text: 'rest', labels: { 'otel.metric.overflow': true } }

/** The instrument name from which translation makes this family's Prometheus name. */
function instrumentName (family: Family): string {
  return `llm_gateway.${family.name.slice(prefix.length).replace(/_(?:total|seconds|ratio)$/, '')}`
}

/**
 * Exposes every family as an instrument: gauges are read when the SDK collects, counters and histograms are written as they count. Of a
 * counter that it reads itself, the SDK for JavaScript says that it counts since its first reading. So who makes differences of sums, as
 * the collector does for some stores, would lose all that had been counted by then.
 */
export function mirrorFamilies (provider: MeterProvider, meter: Meter, families: readonly Family[]): void {
  const byName = observed.get(provider) ?? new Map<string, ValueFamily[]>()
  observed.set(provider, byName)
  for (const family of families) {
    if ('listen' in family) mirrorCounts(meter, family)
    else observe(meter, family, byName)
  }
}

function optionsOf ({ row }: Family): MetricOptions {
  return { description: row.help, unit: row.unit }
}

function mirrorCounts (meter: Meter, family: CounterFamily | HistogramFamily): void {
  const write = limited(openWritable(meter, family))
  // A histogram's cells cannot be turned back into values.
  for (const cell of family.read()) if ('value' in cell && cell.value > 0) write(cell.value, cell.labels)
  family.listen(write)
}

/** The SDK's own limit is for one collection: a label set beyond it would be told in part. `labels` are one object for each cell. */
function limited (write: Write): ValueListener {
  const shown = new Set<object>()
  return (value, labels) => {
    const known = shown.has(labels) || shown.size < maxShown
    if (known) shown.add(labels)
    write(value, known ? labels : rest.labels)
  }
}

function openWritable (meter: Meter, family: CounterFamily | HistogramFamily): Write {
  if (family.row.type === 'counter') {
    const counter = meter.createCounter(instrumentName(family), optionsOf(family))
    return (amount, labels) => counter.add(amount, labels)
  }
  const advice = { explicitBucketBoundaries: [...family.row.buckets] }
  const histogram = meter.createHistogram(instrumentName(family), { ...optionsOf(family), advice })
  return (value, labels) => histogram.record(value, labels)
}

function observe (meter: Meter, family: ValueFamily, byName: Map<string, ValueFamily[]>): void {
  const present = byName.get(family.name)
  if (present !== undefined) {
    present.push(family)
    return
  }
  const families = [family]
  const shown = new Set<string>()
  byName.set(family.name, families)
  openObservable(meter, family).addCallback((result) => observeAll(families, shown, result))
}

/** A gauge whose values add up over processes is an UpDownCounter in OpenTelemetry. */
function openObservable (meter: Meter, family: Family): Observable {
  const name = instrumentName(family)
  if (family.row.aggregator === 'sum') return meter.createObservableUpDownCounter(name, optionsOf(family))
  return meter.createObservableGauge(name, optionsOf(family))
}

/** Sums what is told together, because of observed values the SDK for JavaScript keeps the last one instead of the sum. */
function observeAll (families: readonly ValueFamily[], shown: Set<string>, result: ObservableResult): void {
  const sums = new Map<string, { readonly value: number, readonly labels: Attributes }>()
  for (const { row, read } of families) {
    for (const cell of read()) {
      const { text, labels } = shown.has(cell.text) || shown.size < maxShown ? cell : rest
      shown.add(text)
      const present = sums.get(text)
      sums.set(text, { labels, value: present === undefined ? cell.value : combine[row.aggregator](present.value, cell.value) })
    }
  }
  for (const { value, labels } of sums.values()) result.observe(value, labels)
}
