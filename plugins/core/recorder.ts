/**
 * What happened, reported once, by the plugin that knows it. The metrics plugin puts a real recorder in `gateway.recorder`;
 * without it, every call is a no-op.
 */
import type { FamilyName, ProtocolLabel } from '../protocols/index.js'
import type { ModelCall } from './call/model-call.js'

export const lookupResults = ['hit', 'negative_hit', 'miss', 'coalesced', 'stale', 'error'] as const
export type LookupResult = typeof lookupResults[number]

export const shedReasons = [
  'active', 'body_memory', 'connections', 'heap', 'key_share', 'loop_delay', 'queue_full', 'queue_timeout',
] as const
export type ShedReason = typeof shedReasons[number]

/** Counters whose labels follow from the configuration. */
type ExpectedCounter = 'upstream_attempts_total' | 'failovers_total' | 'limit_rejections_total' | 'budget_warnings_total'

export interface GaugeSample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  /** What it is a value of: if several sources report the same thing, it counts once. */
  readonly of?: object
}

export interface Recorder {
  /** A model request arrived: it is active until it is settled. */
  started: (llm: ModelCall) => void
  /** Everything that is known at the end: requests, tokens, durations, aborts. Called once per started request. */
  settled: (llm: ModelCall) => void
  pathNormalized: (protocol: ProtocolLabel, kind: string) => void
  /** A path below our prefix, or without a route, leads to no endpoint. `reason` is a code of the error table. */
  pathRefused: (family: FamilyName, reason: string) => void
  authFailed: (protocol: ProtocolLabel, reason: string) => void
  /** `seconds` only if the store was asked. */
  keyLookedUp: (result: LookupResult, seconds?: number) => void
  validationFailed: (protocol: ProtocolLabel, keyword: string) => void
  limitRejected: (group: string, limit: string) => void
  /** One attempt at an upstream is over. `result` is one of a fixed set. */
  upstreamAttempted: (upstream: string, result: string) => void
  /** Another attempt follows one that failed. */
  failedOver: (pool: string, reason: string) => void
  /** A share of a budget of a group, or of one of its keys, is spent. */
  budgetReached: (group: string, period: string, percent: number) => void
  /** The disk refused usage records: they wait, and their tokens are not charged yet. Once per try. */
  ledgerFailed: () => void
  /** A settlement was given up: the store did not take it, and this process does not try again. */
  settlementLost: () => void
  /** A log line of this process was dropped. */
  logDropped: () => void
  /** A request was refused because the process has too much to do. */
  shed: (reason: ShedReason) => void
  /**
   * Starts series with these label values at 0, as far as there is room, so that a first event shows as a rise. Values in the order of
   * the catalogue. Called once all plugins are there; existing series stay.
   */
  expect: (name: ExpectedCounter, labelSets: Iterable<readonly string[]>) => void
  /** Adds a source that is read at each scrape, such as the entries of a cache. Returns a function that removes it. */
  gauge: (name: GaugeName, read: () => readonly GaugeSample[]) => () => void
}

export type GaugeName =
  | 'key_cache_entries' | 'balance_remaining_ratio' | 'budget_remaining_ratio' | 'ledger_unshipped_records' | 'ledger_lag_seconds'
  | 'upstream_available' | 'upstream_active_requests' | 'model_aliases'

function nothing (): void {}

export const silentRecorder: Recorder = {
  started: nothing,
  settled: nothing,
  pathNormalized: nothing,
  pathRefused: nothing,
  authFailed: nothing,
  keyLookedUp: nothing,
  validationFailed: nothing,
  limitRejected: nothing,
  upstreamAttempted: nothing,
  failedOver: nothing,
  budgetReached: nothing,
  ledgerFailed: nothing,
  settlementLost: nothing,
  logDropped: nothing,
  shed: nothing,
  expect: nothing,
  gauge: () => nothing,
}

export interface ValueReading {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface HistogramReading {
  readonly labels: Readonly<Record<string, string>>
  /** Not cumulative; the last has no upper bound. */
  readonly buckets: ReadonlyArray<{ readonly upTo: number, readonly count: number }>
  readonly sum: number
  readonly count: number
}

/** One metric, for readers inside of the process, such as the console. */
export interface MetricFamily {
  readonly name: string
  readonly read: () => ReadonlyArray<ValueReading | HistogramReading>
}
