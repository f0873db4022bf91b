import type { Recorder } from '../core/recorder.js'
import type { LabelsOf, LabelValues, NameOf } from './catalogue.js'
import { expecting } from './from-zero.js'
import type { MetricStore } from './store.js'

type Reported<Name extends keyof Recorder> = Pick<Recorder, Name>

/** A counter that counts events one by one, each with its label values. */
type Count<N extends NameOf<'counter'>> = (...values: LabelValues<LabelsOf<N>>) => void

function counting<N extends NameOf<'counter'>> (store: MetricStore, name: N): Count<N> {
  const counter = store.counter(name)
  return (...values) => counter.add(1, ...values)
}

/** Counts what happens to a request before it is sent. */
export function admissionCounters (store: MetricStore): Reported<
  'pathNormalized' | 'pathRefused' | 'authFailed' | 'keyLookedUp' | 'validationFailed' | 'shed'
> {
  const authFailed = counting(store, 'auth_failures_total')
  const lookups = store.counter('key_lookups_total')
  const lookupDuration = store.histogram('key_lookup_duration_seconds')

  return {
    authFailed,
    keyLookedUp: (result, seconds) => {
      lookups.add(1, result)
      if (seconds !== undefined) lookupDuration.observe(seconds, result)
    },
    validationFailed: counting(store, 'validation_failures_total'),
    pathNormalized: counting(store, 'path_normalizations_total'),
    pathRefused: counting(store, 'path_refusals_total'),
    shed: counting(store, 'shed_total'),
  }
}

/** Counts what could not be kept. */
export function lossCounters (store: MetricStore): Reported<'ledgerFailed' | 'settlementLost' | 'logDropped'> {
  return {
    ledgerFailed: counting(store, 'ledger_write_failures_total'),
    settlementLost: counting(store, 'settlements_lost_total'),
    logDropped: counting(store, 'log_lines_dropped_total'),
  }
}

/** Counters whose labels follow from the configuration, so that they can start at 0. */
export function configuredCounters (store: MetricStore): Reported<
  'upstreamAttempted' | 'failedOver' | 'limitRejected' | 'budgetReached' | 'expect'
> {
  const attempts = store.counter('upstream_attempts_total')
  const failovers = store.counter('failovers_total')
  const limitRejections = store.counter('limit_rejections_total')
  const budgetWarnings = store.counter('budget_warnings_total')
  const expected = {
    upstream_attempts_total: expecting(attempts),
    failovers_total: expecting(failovers),
    limit_rejections_total: expecting(limitRejections),
    budget_warnings_total: expecting(budgetWarnings),
  }

  return {
    upstreamAttempted: (upstream, result) => attempts.add(1, upstream, result),
    failedOver: (pool, reason) => failovers.add(1, pool, reason),
    limitRejected: (group, limit) => limitRejections.add(1, group, limit),
    budgetReached: (group, period, percent) => budgetWarnings.add(1, group, period, String(percent)),
    expect: (name, labelSets) => expected[name](labelSets),
  }
}
