/**
 * Every metric of the gateway: the single source for the recorder, both projections, the documents, the dashboard and the alert rules.
 * Names are without their common prefix `llm_gateway_`.
 *
 * Label values come from closed sets, from the configuration (`group`, `upstream`), from the bounded model names of `model-names.ts` or the
 * labels of keys of `key-labels.ts`; never from a path or anything else that a caller can invent.
 */
export const prefix = 'llm_gateway_'

/** How the values of several workers of one host are combined. */
export type Aggregator = 'sum' | 'min' | 'max'

/** Combines two values of one series, from two processes or two sources of one process. */
export const combine: Readonly<Record<Aggregator, (one: number, other: number) => number>> = {
  sum: (one, other) => one + other,
  min: Math.min,
  max: Math.max,
}

export interface CatalogueRow {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
  /** In UCUM, as OpenTelemetry writes it: `s`, what is counted in braces, or `1` for shares only, whose gauge is translated to `_ratio`. */
  readonly unit: string
  readonly aggregator: Aggregator
  readonly buckets: readonly number[]
}

type Labels = readonly string[]

function counter<const L extends Labels> (labels: L, unit: string, help: string) {
  return { type: 'counter', help, labels, unit, aggregator: 'sum', buckets: [] } as const
}

function gauge<const L extends Labels> (labels: L, unit: string, aggregator: Aggregator, help: string) {
  return { type: 'gauge', help, labels, unit, aggregator, buckets: [] } as const
}

function seconds<const L extends Labels> (labels: L, bounds: readonly number[], help: string) {
  return { type: 'histogram', help, labels, unit: 's', aggregator: 'sum', buckets: bounds } as const
}

/**
 * Upper bounds of the histograms, ascending, in the unit of their metric.
 *
 * `operation` follows OpenTelemetry's GenAI conventions (0.01 s, doubled up to 81.92 s) plus three doublings, because long reasoning and
 * large images take minutes. `token` follows them for time per output token, with one finer and one coarser bound. The others cover what
 * their work really takes: microseconds for a lookup in memory, up to a second for a store in trouble.
 */
const buckets = {
  operation: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36],
  token: [0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5],
  overhead: [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
  lookup: [0.00001, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1],
} as const

export const catalogue = {
  requests_total: counter(['protocol', 'group', 'model', 'stream', 'outcome'], '{request}',
    'Model requests, counted once each at their end.'),
  tokens_total: counter(['protocol', 'group', 'model', 'direction', 'type'], '{token}',
    'Tokens as the provider reported them. The types are disjoint: their sum is the total.'),
  modality_tokens_total: counter(['protocol', 'group', 'model', 'direction', 'modality'], '{token}',
    'The same tokens by kind of content, where the provider tells it. A view, not to be added to tokens_total.'),
  cost_total: counter(['protocol', 'group', 'model', 'currency'], '{cost}',
    'What requests cost, by the price lists. The ledger has the exact sums.'),
  unpriced_requests_total: counter(['protocol', 'model'], '{request}',
    'Requests that cost something for which there is no price, in part or in all.'),
  usage_missing_total: counter(['protocol', 'reason'], '{request}',
    'Metered replies whose token usage could not be read.'),
  usage_inconsistent_total: counter(['protocol'], '{request}',
    'Replies whose reported parts disagree with their reported totals.'),
  active_requests: gauge(['protocol'], '{request}', 'sum',
    'Model requests in progress, open streams included.'),
  request_duration_seconds: seconds(['protocol', 'model', 'stream', 'outcome'], buckets.operation,
    'Time from the arrival of a request to the last byte of its reply.'),
  time_to_first_chunk_seconds: seconds(['protocol', 'model'], buckets.operation,
    'Time from the arrival of a request to the first chunk of its streamed reply.'),
  time_per_output_token_seconds: seconds(['protocol', 'model'], buckets.token,
    'Time between the first and the last chunk of a streamed reply, per output token after the first.'),
  overhead_seconds: seconds(['protocol'], buckets.overhead,
    'Time that the gateway itself took, waits for the upstream and for the caller excluded.'),
  upstream_responses_total: counter(['upstream', 'status_class'], '{response}',
    'Replies of the upstreams by class of their status, each attempt for itself; error where none came.'),
  upstream_attempts_total: counter(['upstream', 'result'], '{attempt}',
    'Attempts to send a request to an upstream, counted once each at their end.'),
  failovers_total: counter(['pool', 'reason'], '{attempt}',
    'Attempts that followed one that had failed, by why it had.'),
  upstream_available: gauge(['upstream'], '{upstream}', 'min',
    'Whether an upstream may be asked: 0 while its failures or a refused credential keep requests from it.'),
  upstream_active_requests: gauge(['upstream'], '{request}', 'sum',
    'Requests that run at an upstream.'),
  model_aliases: gauge(['upstream', 'model', 'sent_as'], '{alias}', 'max',
    'Always 1; the name that an upstream knows a model by.'),
  stream_aborts_total: counter(['protocol', 'side'], '{stream}',
    'Streamed replies that broke off, by the side that ended them.'),
  auth_failures_total: counter(['protocol', 'reason'], '{request}',
    'Requests refused for their credential or for what it may not do.'),
  key_lookups_total: counter(['result'], '{lookup}',
    'Lookups of API keys by how they were answered.'),
  key_lookup_duration_seconds: seconds(['result'], buckets.lookup,
    'Time that the key store took to answer.'),
  key_cache_entries: gauge(['kind'], '{entry}', 'sum',
    'Entries of the key cache.'),
  validation_failures_total: counter(['protocol', 'keyword'], '{request}',
    'Request bodies refused, by the schema keyword that failed.'),
  path_normalizations_total: counter(['protocol', 'kind'], '{request}',
    'Request paths that were repaired, by kind of repair.'),
  path_refusals_total: counter(['family', 'reason'], '{request}',
    'Requests refused for their path, which lead to no endpoint and are in no other counter, by the family of their caller.'),
  limit_rejections_total: counter(['group', 'limit'], '{request}',
    'Requests refused because a limit was reached, its store was away (store), or a model has no price (price).'),
  ledger_write_failures_total: counter([], '{write}',
    'Writes of usage records that the disk refused. The records wait in memory, and are tried again each second.'),
  ledger_unshipped_records: gauge([], '{record}', 'max',
    'Usage records of this host that the usage store does not have yet.'),
  ledger_lag_seconds: gauge([], 's', 'max',
    'Age of the oldest usage record of this host that the usage store does not have yet; 0 where it has all.'),
  settlements_lost_total: counter([], '{request}',
    'Requests whose tokens and costs the state store did not take. The log has each; the next start in the same folder tries them again.'),
  shed_total: counter(['reason'], '{request}',
    'Requests and connections refused because the process has too much to do.'),
  log_lines_dropped_total: counter([], '{line}',
    'Log lines that were dropped: nobody took them, or they could not be made.'),
  balance_remaining_ratio: gauge(['group'], '1', 'min',
    'Share of the token balance of a group that is left.'),
  budget_remaining_ratio: gauge(['group', 'period'], '1', 'min',
    'Share of a budget of a group that is left in its period; of the one that has least where several have the same period.'),
  budget_warnings_total: counter(['group', 'period', 'percent'], '{warning}',
    'Times a budget of a group, or of a key of it, reached 50, 80 or 100 percent: once each in a period.'),
  label_overflow_total: counter(['label'], '{event}',
    'Times a label value became other because its limit was reached or it is not listed.'),
  series: gauge([], '{series}', 'sum',
    'Time series that these metrics expose.'),
  build_info: gauge(['version'], '{build}', 'max',
    'Always 1; the version of the gateway.'),
} as const satisfies Record<string, CatalogueRow>

type Catalogue = typeof catalogue
export type MetricName = keyof Catalogue
/** Metric names of one type. */
export type NameOf<T extends CatalogueRow['type']> = { [N in MetricName]: Catalogue[N]['type'] extends T ? N : never }[MetricName]
/** One value for each label of a metric, in the order of the catalogue. */
export type LabelValues<L extends readonly string[]> = { readonly [I in keyof L]: string }
export type LabelsOf<N extends MetricName> = Catalogue[N]['labels']
