import type { Attributes, Meter, MeterProvider, MetricOptions, Observable, ObservableResult } from '@opentelemetry/api'
import { combine, prefix } from './catalogue.js'
import type { Family, HistogramFamily, ValueFamily } from './store.js'

/**
 * The families behind each observable instrument, by name. Two apps of one process write to the same instruments, and an SDK keeps only one
 * of two values observed for the same attributes: so one callback adds them up.
 */
const observed = new WeakMap<MeterProvider, Map<string, ValueFamily[]>>()

/** The instrument name from which translation makes this family's Prometheus name. */
function instrumentName (family: Family): string {
  return `llm_gateway.${family.name.slice(prefix.length).replace(/_(?:total|seconds|ratio)$/, '')}`
}

/** Exposes every family as an instrument: counters and gauges are read when the SDK collects, histograms are written directly. */
export function mirrorFamilies (provider: MeterProvider, meter: Meter, families: readonly Family[]): void {
  const byName = observed.get(provider) ?? new Map<string, ValueFamily[]>()
  observed.set(provider, byName)
  for (const family of families) {
    if ('listen' in family) mirrorHistogram(meter, family)
    else observe(meter, family, byName)
  }
}

function optionsOf ({ row }: Family): MetricOptions {
  return { description: row.help, unit: row.unit }
}

function mirrorHistogram (meter: Meter, family: HistogramFamily): void {
  const advice = { explicitBucketBoundaries: [...family.row.buckets] }
  const histogram = meter.createHistogram(instrumentName(family), { ...optionsOf(family), advice })
  family.listen((value, labels) => histogram.record(value, labels))
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
  if (family.row.type === 'counter') return meter.createObservableCounter(name, optionsOf(family))
  if (family.row.aggregator === 'sum') return meter.createObservableUpDownCounter(name, optionsOf(family))
  return meter.createObservableGauge(name, optionsOf(family))
}

/**
 * The number of label sets that an SDK keeps apart by default, and its label for the sum of all others. They are summed here, because of
 * observed values the SDK for JavaScript keeps the last one instead of the sum, and adds it again at each collection.
 */
const maxShown = 1_999
const rest = { text: 'rest', labels: { 'otel.metric.overflow': true } }

function observeAll (families: readonly ValueFamily[], shown: Set<string>, result: ObservableResult): void {
  const sums = new Map<string, { readonly value: number, readonly labels: Attributes }>()
  for (const { row, read } of families) {
    for (const cell of read()) {
      // Prometheus needs counters to start at 0. Here a counter begins with its first event, because its start time is reported.
      if (cell.value === 0 && row.type === 'counter') continue
      const { text, labels } = shown.has(cell.text) || shown.size < maxShown ? cell : rest
      shown.add(text)
      const present = sums.get(text)
      sums.set(text, { labels, value: present === undefined ? cell.value : combine[row.aggregator](present.value, cell.value) })
    }
  }
  for (const { value, labels } of sums.values()) result.observe(value, labels)
}
