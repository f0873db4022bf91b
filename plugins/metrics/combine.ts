import type { Aggregator } from './catalogue.js'

/** Two values of one series, from two processes or two sources of one process, as one. */
export const combine: Readonly<Record<Aggregator, (one: number, other: number) => number>> = {
  sum: (one, other) => one + other,
  min: Math.min,
  max: Math.max,
}
