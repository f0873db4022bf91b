import type { Readings, Row, Sums } from './readings.js'

/** Keeps the page readable, and its data small, however many groups and models there are. */
const maxRows = 100

interface TokenRow {
  readonly group: string
  readonly model: string
  total: number
  /** By type; the types are disjoint. */
  readonly types: Sums
}

/** Tokens of each group and model since the start, largest first. */
export function tokenRows (readings: Readings): readonly TokenRow[] {
  const rows = new Map<string, TokenRow>()
  for (const { labels, value } of readings.values('tokens_total')) {
    const group = String(labels['group'])
    const model = String(labels['model'])
    const type = String(labels['type'])
    const key = JSON.stringify([group, model])
    const row = rows.get(key) ?? { group, model, total: 0, types: {} }
    row.total += value
    row.types[type] = (row.types[type] ?? 0) + value
    rows.set(key, row)
  }
  return [...rows.values()].sort((a, b) => b.total - a.total)
}

const ownLabels: readonly string[] = ['protocol', 'group', 'model', 'currency']

/** Label, value, currency and cost, by each label of keys that the metrics have. */
function labelCostRows (readings: Readings): readonly Row[] {
  const [first] = readings.values('cost_total')
  const names = Object.keys(first?.labels ?? {}).filter((name) => !ownLabels.includes(name))
  return names.flatMap((label) => largest(readings.rows('cost_total', label, 'currency')).slice(0, maxRows).map((row) => [label, ...row]))
}

/** By their last values. */
function largest (rows: readonly Row[]): readonly Row[] {
  return rows.toSorted((a, b) => Number(b.at(-1)) - Number(a.at(-1)))
}

/** Bounds of a histogram, for the bucket counts of the points; the one above all bounds is left out. */
export function boundsOf (readings: Readings, name: string): readonly number[] {
  const [first] = readings.histograms(name)
  return first?.buckets.map(({ upTo }) => upTo).filter(Number.isFinite) ?? []
}

/** Some counters start at 0: what never happened has no row. Largest first. */
function happened (rows: readonly Row[]): readonly Row[] {
  return largest(rows.filter((row) => row.at(-1) !== 0)).slice(0, maxRows)
}

/** Tables of what no chart shows: counts since the start, by their labels. `ofCosts`: readings of the chosen time range of the costs. */
export function tables (readings: Readings, ofCosts = readings): Record<string, unknown> {
  const tokens = tokenRows(readings)
  const costs = largest(ofCosts.rows('cost_total', 'group', 'model', 'currency'))
  return {
    tokens: tokens.slice(0, maxRows),
    allTokens: { rows: tokens.length, total: readings.total('tokens_total') },
    costs: costs.slice(0, maxRows),
    allCosts: { rows: costs.length, totals: ofCosts.rows('cost_total', 'currency') },
    labelCosts: labelCostRows(ofCosts),
    outcomes: readings.rows('requests_total', 'protocol', 'outcome'),
    refused: happened(readings.rows('auth_failures_total', 'reason')),
    limited: happened(readings.rows('limit_rejections_total', 'group', 'limit')),
    invalid: happened(readings.rows('validation_failures_total', 'protocol', 'keyword')),
    repaired: happened(readings.rows('path_normalizations_total', 'protocol', 'kind')),
    upstreams: readings.rows('upstream_responses_total', 'upstream', 'status_class'),
    aborts: happened(readings.rows('stream_aborts_total', 'protocol', 'side')),
    missing: happened(readings.rows('usage_missing_total', 'protocol', 'reason')),
    cache: happened(readings.rows('key_cache_entries', 'kind')),
    balances: readings.rows('balance_remaining_ratio', 'group'),
    series: readings.total('series'),
    version: readings.rows('build_info', 'version').map(([version]) => version).join(),
  }
}
