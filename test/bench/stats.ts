/** Pure statistics of the benchmark: quantiles, ratios of windows, and when a result may be believed. */

/** Linear interpolation between the two nearest ranks. NaN for nothing. */
export function quantile (values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const rank = (sorted.length - 1) * q
  const below = sorted[Math.floor(rank)] ?? NaN
  const above = sorted[Math.ceil(rank)] ?? NaN
  return below + (above - below) * (rank - Math.floor(rank))
}

export function median (values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** How far two names of the same program lie apart, as a share of the first: what this run cannot tell from zero. */
export function spread (first: number, second: number): number {
  return Math.abs(second / first - 1)
}

/** The most that the same program, measured twice in one run, may differ from itself. */
export const maxSpread = 0.05

export type Reach = { readonly atLeast: number } | { readonly atMost: number }

export type Verdict = 'reached' | 'missed' | 'unresolved'

/** A measure whose A/A pair lies further apart than `maxSpread` decides nothing, whatever its value. */
export function verdict (value: number, reach: Reach, aaSpread: number): Verdict {
  const goal = 'atLeast' in reach ? reach.atLeast : reach.atMost
  const reached = 'atLeast' in reach ? value >= goal : value <= goal
  if (!Number.isFinite(value) || !(aaSpread <= maxSpread)) return 'unresolved'
  return reached ? 'reached' : 'missed'
}
