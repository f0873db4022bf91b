import { durationOf, firstChunkOf, overheadOf, perOutputTokenOf, succeeded } from '../core/call/measures.js'
import type { SettledCost } from '../core/money/cost.js'
import type { GaugeName, GaugeSample, Recorder } from '../core/recorder.js'
import type { ModelCall } from '../core/call/model-call.js'
import { expecting } from './from-zero.js'
import type { KeyLabels } from './key-labels.js'
import type { ModelNames } from './model-names.js'
import type { MetricStore } from './store.js'
import { responseRecording } from './upstream-responses.js'

/** The labels that most metrics of one request share. */
interface Labels {
  readonly protocol: string
  readonly group: string
  readonly model: string
  /** Values of its key's labels that the metrics show. */
  readonly own: readonly string[]
}

/** Bounds the labels whose values come from outside. */
export interface LabelNames {
  readonly models: ModelNames
  readonly keys: KeyLabels
}

/** A provider may name any kind of content in its reply; these become labels, others are `other`. */
const modalityLabels: ReadonlySet<string> = new Set(['text', 'image', 'audio', 'video', 'document'])

/** Called with each settled request and its bounded model label, after the cells are updated. */
export type SettledListener = (llm: ModelCall, model: string) => void

/** A recorder that writes to the cells of `store`. Make only one for each store. */
export function createRecorder (store: MetricStore, { models, keys }: LabelNames, listener: SettledListener): Recorder {
  const settle = settlement(store)
  const active = store.gauge('active_requests')
  const authFailures = store.counter('auth_failures_total')
  const lookups = store.counter('key_lookups_total')
  const lookupDuration = store.histogram('key_lookup_duration_seconds')
  const validationFailures = store.counter('validation_failures_total')
  const normalizations = store.counter('path_normalizations_total')
  const pathRefusals = store.counter('path_refusals_total')
  const limitRejections = store.counter('limit_rejections_total')
  const budgetWarnings = store.counter('budget_warnings_total')
  const ledgerFailures = store.counter('ledger_write_failures_total')
  const settlementLosses = store.counter('settlements_lost_total')
  const logDrops = store.counter('log_lines_dropped_total')
  const shed = store.counter('shed_total')
  const attempts = store.counter('upstream_attempts_total')
  const failovers = store.counter('failovers_total')
  const followed = followedGauges(store)
  const expected = {
    upstream_attempts_total: expecting(attempts),
    failovers_total: expecting(failovers),
    limit_rejections_total: expecting(limitRejections),
    budget_warnings_total: expecting(budgetWarnings),
  }
  store.describeItself()

  return {
    started: (llm) => active.move(1, llm.protocol),
    settled: (llm) => {
      active.move(-1, llm.protocol)
      const model = modelLabel(models, llm)
      // Not counted elsewhere: on routes of this package a body is cut off before it is checked.
      if (llm.errorCode === 'body_too_large') validationFailures.add(1, llm.protocol, 'too_large')
      settle(llm, { protocol: llm.protocol, group: llm.auth.group?.id ?? 'none', model, own: keys.of(llm) })
      listener(llm, model)
    },
    pathNormalized: (protocol, kind) => normalizations.add(1, protocol, kind),
    pathRefused: (family, reason) => pathRefusals.add(1, family, reason),
    authFailed: (protocol, reason) => authFailures.add(1, protocol, reason),
    keyLookedUp: (result, seconds) => {
      lookups.add(1, result)
      if (seconds !== undefined) lookupDuration.observe(seconds, result)
    },
    validationFailed: (protocol, keyword) => validationFailures.add(1, protocol, keyword),
    limitRejected: (group, limit) => limitRejections.add(1, group, limit),
    upstreamAttempted: (upstream, result) => attempts.add(1, upstream, result),
    failedOver: (pool, reason) => failovers.add(1, pool, reason),
    budgetReached: (group, period, percent) => budgetWarnings.add(1, group, period, String(percent)),
    ledgerFailed: () => ledgerFailures.add(1),
    settlementLost: () => settlementLosses.add(1),
    logDropped: () => logDrops.add(1),
    shed: (reason) => shed.add(1, reason),
    expect: (name, labelSets) => expected[name](labelSets),
    gauge: (name: GaugeName, read: () => readonly GaugeSample[]) => followed[name].follow((set) => {
      for (const { value, labels, of } of read()) set(value, labels, of)
    }),
  }
}

function followedGauges (store: MetricStore) {
  return {
    key_cache_entries: store.gauge('key_cache_entries'),
    balance_remaining_ratio: store.gauge('balance_remaining_ratio'),
    budget_remaining_ratio: store.gauge('budget_remaining_ratio'),
    ledger_unshipped_records: store.gauge('ledger_unshipped_records'),
    ledger_lag_seconds: store.gauge('ledger_lag_seconds'),
    upstream_available: store.gauge('upstream_available'),
    upstream_active_requests: store.gauge('upstream_active_requests'),
    model_aliases: store.gauge('model_aliases'),
  }
}

/** The model that a refused stranger names is no label, even if it is a known model. */
function modelLabel (models: ModelNames, llm: ModelCall): string {
  if (llm.outcome === 'auth_error') return 'none'
  return models.label(llm.model ?? llm.usage.responseModel, succeeded(llm))
}

function settlement (store: MetricStore): (llm: ModelCall, labels: Labels) => void {
  const requests = store.labelled('requests_total')
  const recordTokens = tokenRecording(store)
  const recordCost = costRecording(store)
  const recordTimes = timeRecording(store)
  const recordResponses = responseRecording(store)
  const aborts = store.counter('stream_aborts_total')

  return (llm, labels) => {
    const { protocol, group, model, own } = labels
    requests.addFor(own, 1, protocol, group, model, String(llm.stream), String(llm.outcome))
    recordTokens(llm, labels)
    if (llm.cost !== null) recordCost(llm.cost, labels)
    recordTimes(llm, model)
    recordResponses(llm)
    if (llm.stream && llm.abortedBy !== null) aborts.add(1, protocol, llm.abortedBy)
  }
}

function tokenRecording (store: MetricStore): (llm: ModelCall, labels: Labels) => void {
  const tokens = store.tokens()
  const modalities = store.counter('modality_tokens_total')
  const missing = store.counter('usage_missing_total')
  const inconsistent = store.counter('usage_inconsistent_total')

  return (llm, { protocol, group, model, own }) => {
    if (llm.usage.tokens !== null) tokens.add(llm.usage.tokens, protocol, group, model, own)
    if (llm.usage.modalities !== null) {
      for (const { tokens: amount, direction, modality } of llm.usage.modalities) {
        modalities.add(amount, protocol, group, model, direction, modalityLabels.has(modality) ? modality : 'other')
      }
    }
    if (llm.usage.missing !== null) missing.add(1, protocol, llm.usage.missing)
    if (llm.usage.inconsistent) inconsistent.add(1, protocol)
  }
}

function costRecording (store: MetricStore): (cost: SettledCost, labels: Labels) => void {
  const costs = store.labelled('cost_total')
  const unpriced = store.counter('unpriced_requests_total')

  return (cost, { protocol, group, model, own }) => {
    if (cost.value !== null) costs.addFor(own, cost.value, protocol, group, model, cost.currency)
    if (cost.unpriced) unpriced.add(1, protocol, model)
  }
}

function timeRecording (store: MetricStore): (llm: ModelCall, model: string) => void {
  const duration = store.histogram('request_duration_seconds')
  const firstChunk = store.histogram('time_to_first_chunk_seconds')
  const perOutputToken = store.histogram('time_per_output_token_seconds')
  const overhead = store.histogram('overhead_seconds')

  return (llm, model) => {
    const { protocol } = llm
    duration.observe(durationOf(llm), protocol, model, String(llm.stream), String(llm.outcome))
    const toFirstChunk = firstChunkOf(llm)
    if (toFirstChunk !== null) firstChunk.observe(toFirstChunk, protocol, model)
    const perToken = perOutputTokenOf(llm)
    if (perToken !== null) perOutputToken.observe(perToken, protocol, model)
    const own = overheadOf(llm)
    if (own !== null) overhead.observe(own, protocol)
  }
}
