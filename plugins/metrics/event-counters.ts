import type { Recorder } from '../core/recorder.js'
import { expecting } from './from-zero.js'
import type { MetricStore } from './store.js'

type Reported<Name extends keyof Recorder> = Pick<Recorder, Name>

/** Counts what happens to a request before it is sent. */
export function admissionCounters (store: MetricStore): Reported<
  'pathNormalized' | 'pathRefused' | 'authFailed' | 'keyLookedUp' | 'validationFailed' | 'shed'
> {
  const authFailures = store.counter('auth_failures_total')
  const lookups = store.counter('key_lookups_total')
  const lookupDuration = store.histogram('key_lookup_duration_seconds')
  const validationFailures = store.counter('validation_failures_total')
  const normalizations = store.counter('path_normalizations_total')
  const pathRefusals = store.counter('path_refusals_total')
  const shed = store.counter('shed_total')

  return {
    pathNormalized: (protocol, kind) => normalizations.add(1, protocol, kind),
    pathRefused: (family, reason) => pathRefusals.add(1, family, reason),
    authFailed: (protocol, reason) => authFailures.add(1, protocol, reason),
    keyLookedUp: (result, seconds) => {
      lookups.add(1, result)
      if (seconds !== undefined) lookupDuration.observe(seconds, result)
    },
    validationFailed: (protocol, keyword) => validationFailures.add(1, protocol, keyword),
    shed: (reason) => shed.add(1, reason),
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

/** Counts what could not be kept. */
export function lossCounters (store: MetricStore): Reported<'ledgerFailed' | 'settlementLost' | 'logDropped'> {
  const ledgerFailures = store.counter('ledger_write_failures_total')
  const settlementLosses = store.counter('settlements_lost_total')
  const logDrops = store.counter('log_lines_dropped_total')

  return {
    ledgerFailed: () => ledgerFailures.add(1),
    settlementLost: () => settlementLosses.add(1),
    logDropped: () => logDrops.add(1),
  }
}
