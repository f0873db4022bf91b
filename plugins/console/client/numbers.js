/** The data of the page, and what is computed from it: rates, quantiles, and short numbers. */

/** Rates and quantiles are over this many points: ten seconds. */
const span = 5

export const state = { points: [], bounds: {}, startedAt: 0 }

export const failures = ['upstream_error', 'gateway_error', 'timeout', 'truncated']
export const refusals = ['client_error', 'auth_error', 'limited']
export const inputTypes = ['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'cache_write', 'tool_input']
export const outputTypes = ['output', 'reasoning']

const sum = (values) => values.reduce((total, value) => total + value, 0)

/** Some of a point's counts of one kind, such as its `outcomes`, or all of them. */
const countOf = (point, kind, names = Object.keys(point[kind])) => sum(names.map((name) => point[kind][name] ?? 0))

/** Counts never fall: if they do, another process or app answers, whose counts do not continue the old ones. */
export function goesOn ({ startedAt, points: [first] }) {
  const last = state.points.at(-1)
  if (startedAt !== state.startedAt) return false
  return first === undefined || last === undefined || countOf(first, 'outcomes') >= countOf(last, 'outcomes')
}

function pastOf (index) {
  return state.points[Math.max(0, index - span)]
}

/** Reads by how much counts grew up to a point, per second. */
export const rateOf = (kind, names) => (index) => {
  const now = state.points[index]
  const past = pastOf(index)
  return now === past ? null : Math.max(0, countOf(now, kind, names) - countOf(past, kind, names)) / (now.at - past.at) * 1_000
}

/** Reads a quantile of the values up to a point, by linear interpolation in its bucket, as in PromQL. */
export const quantileOf = (name, quantile) => (index) => {
  const limits = state.bounds[name] ?? []
  const now = state.points[index][name]
  const past = pastOf(index)[name]
  const counts = now.map((count, bucket) => count - (past[bucket] ?? 0))
  const rank = sum(counts) * quantile
  if (!(rank > 0)) return null
  let reached = 0
  for (const [bucket, count] of counts.entries()) {
    if (reached + count >= rank) {
      const lower = bucket === 0 ? 0 : limits[bucket - 1]
      const upper = limits[bucket] ?? lower
      return lower + (upper - lower) * (rank - reached) / count
    }
    reached += count
  }
  return null
}

export function short (value) {
  if (value === null || value === undefined) return '–'
  const size = Math.abs(value)
  const [unit, by] = size >= 1e9 ? ['G', 1e9] : size >= 1e6 ? ['M', 1e6] : size >= 1e4 ? ['k', 1e3] : ['', 1]
  const scaled = value / by
  return (Math.abs(scaled) >= 100 || Number.isInteger(scaled) ? Math.round(scaled) : Number(scaled.toPrecision(3))).toLocaleString('en') +
    unit
}

/** Four significant digits, however small: a single request may cost millionths. */
export function money (value, currency) {
  const digits = value >= 1000 ? { maximumFractionDigits: 2 } : { maximumSignificantDigits: 4 }
  return `${value.toLocaleString('en', digits)} ${currency}`
}

export function seconds (value) {
  if (value === null || value === undefined) return '–'
  if (value === 0) return '0'
  if (value < 0.001) return `${Number((value * 1e6).toPrecision(3))} µs`
  if (value < 1) return `${Number((value * 1e3).toPrecision(3))} ms`
  return value < 120 ? `${Number(value.toPrecision(3))} s` : `${Number((value / 60).toPrecision(3))} min`
}

export const percent = (value) => value === null ? '–' : `${Number((value * 100).toPrecision(3))} %`

export function duration (ms) {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 1) return 'less than a minute'
  if (minutes < 120) return `${minutes} min`
  return minutes < 2_880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} days`
}
