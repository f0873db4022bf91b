import { durationOf, firstChunkOf, overheadOf, perOutputTokenOf, succeeded } from '../core/call/measures.js'
import type { SettledCost } from '../core/money/cost.js'
import type { GaugeName, GaugeSample, Recorder } from '../core/recorder.js'
import type { ModelCall } from '../core/call/model-call.js'
import { admissionCounters, configuredCounters, lossCounters } from './event-counters.js'
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
  readonly keyLabels: readonly string[]
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
  const admission = admissionCounters(store)
  const followed = followedGauges(store)
  store.describeItself()

  return {
    ...admission,
    ...configuredCounters(store),
    ...lossCounters(store),
    started: (llm) => active.move(1, llm.protocol),
    settled: (llm) => {
      active.move(-1, llm.protocol)
      const model = modelLabel(models, llm)
      // Not counted elsewhere: on routes of this package a body is cut off before it is checked.
      if (llm.errorCode === 'body_too_large') admission.validationFailed(llm.protocol, 'too_large')
      settle(llm, { protocol: llm.protocol, group: llm.auth.group?.id ?? 'none', model, keyLabels: keys.of(llm) })
      listener(llm, model)
    },
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
    const { protocol, group, model, keyLabels } = labels
    requests.addFor(keyLabels, 1, protocol, group, model, String(llm.stream), String(llm.outcome))
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

  return (llm, { protocol, group, model, keyLabels }) => {
    if (llm.usage.tokens !== null) tokens.add(llm.usage.tokens, protocol, group, model, keyLabels)
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

  return (cost, { protocol, group, model, keyLabels }) => {
    if (cost.value !== null) costs.addFor(keyLabels, cost.value, protocol, group, model, cost.currency)
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
    const overheadSeconds = overheadOf(llm)
    if (overheadSeconds !== null) overhead.observe(overheadSeconds, protocol)
  }
}
