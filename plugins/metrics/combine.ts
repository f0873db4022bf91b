import type { Aggregator } from './catalogue.js'

/** Combines two values of one series, from two processes or two sources of one process. */
export const combine: Readonly<Record<Aggregator, (one: number, other: number) => number>> = {
  sum: (one, other) => one + other,
  min: Math.min,
  max: Math.max,
}
